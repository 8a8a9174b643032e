package rpc

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"waza/rpc/access"
	"waza/rpc/host"
	"waza/runner/pause"
)

// countRequests registers what the server counts. It gives a function that counts a
// request; nil without a registry.
func (s *Server) countRequests(r *prometheus.Registry) func(method string, code int64) {
	if r == nil {
		return nil
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waza_rpc_requests_total", Help: "Requests and notifications that were answered, by method and error code; 0 is none.",
	}, []string{"method", "code"})
	r.MustRegister(requests)
	now := func(name, help string, value func(*connection) int) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			sum := 0
			for _, c := range s.clients.list() {
				sum += value(c)
			}
			return float64(sum)
		}))
	}
	now("waza_rpc_connections", "Clients that are connected.", func(*connection) int { return 1 })
	now("waza_rpc_requests_in_flight", "Requests that are being served.", func(c *connection) int { return c.requests.InFlight() })
	now("waza_rpc_subscriptions", "Runs that clients receive.", func(c *connection) int { return c.subscriptions.count() })
	now("waza_rpc_queued_bytes", "Output that clients have yet to read.", func(c *connection) int { return c.stream.Queued() })
	return func(method string, code int64) {
		requests.WithLabelValues(method, strconv.FormatInt(code, 10)).Inc()
	}
}

// headerTimeout is how long a client of the metrics may take to say what it wants.
const headerTimeout = 5 * time.Second

// serveMetrics serves Options.Metrics at /metrics until stop is called. The rules
// of [Server.ListenTCP] hold for the address, connections of other users are refused
// as [Server.Serve] refuses them, and clients show the token as "Authorization:
// Bearer". On a loopback address the Host must be one, too: a web page can let its own
// name point to this machine, and read what it gets from that name.
func (s *Server) serveMetrics(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", onLoopbackHost(s.withToken(promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{}))))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, WriteTimeout: s.o.WriteTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(host.Guard(l, s.o.Token != "", s.log)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics are not served any more", "error", err)
		}
	}()
	return func() {
		server.Close()
		<-done
	}
}

// withToken lets requests with the token pass. Replies to wrong tokens are delayed as
// those of initialize are.
func (s *Server) withToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		if s.o.Token == "" || access.SameSecret(given, "Bearer "+s.o.Token) {
			h.ServeHTTP(w, r)
			return
		}
		if given != "" {
			if pause.For(r.Context(), s.guesses.Wrong(time.Now())) != nil {
				return
			}
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
	})
}

// onLoopbackHost refuses requests that reach a loopback address by another name.
func onLoopbackHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if here != nil && here.IP.IsLoopback() && !access.IsLoopback(r.Host) {
			http.Error(w, "the host must be localhost or a loopback address", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
