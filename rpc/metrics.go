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
	"waza/rpc/internal/peer"
	"waza/runner/pause"
)

// countRequests registers the server's metrics. It returns a function that counts a request, or
// nil if there is no registry.
func (s *Server) countRequests(r *prometheus.Registry) func(method string, code int64) {
	if r == nil {
		return nil
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waza_rpc_requests_total", Help: "Requests and notifications that were answered, by method and error code; 0 means no error.",
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
	now("waza_rpc_connections", "Number of connected clients.", func(*connection) int { return 1 })
	now("waza_rpc_requests_in_flight", "Number of requests being served.", func(c *connection) int { return c.requests.InFlight() })
	now("waza_rpc_subscriptions", "Number of runs that clients receive.", func(c *connection) int { return c.subscriptions.count() })
	now("waza_rpc_queued_bytes", "Size of the output that clients have not read yet.", func(c *connection) int { return c.stream.Queued() })
	return func(method string, code int64) {
		requests.WithLabelValues(method, strconv.FormatInt(code, 10)).Inc()
	}
}

// headerTimeout limits the time for a client of the metrics to send its request.
const headerTimeout = 5 * time.Second

// serveMetrics serves Options.Metrics at /metrics until stop is called. The rules of
// [Server.ListenTCP] apply to the address. Like [Server.Serve], it refuses connections of other
// users. Clients send the token as "Authorization: Bearer".
//
// On a loopback address the Host header must name a loopback address, too. Otherwise a web page
// could point its own name to this machine and read the metrics under that name.
func (s *Server) serveMetrics(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", onLoopbackHost(s.withToken(promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{}))))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, WriteTimeout: s.o.WriteTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(peer.Guard(l, s.o.Token != "", s.strangers)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics server stopped", "error", err)
		}
	}()
	return func() {
		server.Close()
		<-done
	}
}

// withToken passes requests with the token to h. It delays replies to wrong tokens like
// initialize does.
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
			http.Error(w, "the Host header must be localhost or a loopback address", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
