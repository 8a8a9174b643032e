package rpc

import (
	"crypto/subtle"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// counts are what the server counts for Options.Metrics. Nil counts nothing.
type counts struct {
	requests *prometheus.CounterVec // by method and code
}

// unknownMethod stands for all names that are none of a method, for there may be
// any number of them.
const unknownMethod = "unknown"

func (s *Server) newCounts(r *prometheus.Registry) *counts {
	if r == nil {
		return nil
	}
	m := &counts{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waza_rpc_requests_total", Help: "Requests and notifications that were answered, by method and error code; 0 is none.",
	}, []string{"method", "code"})}
	r.MustRegister(m.requests)
	now := func(name, help string, value func(*session) int) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			s.mu.Lock()
			sessions := slices.Collect(maps.Keys(s.sessions))
			s.mu.Unlock()
			sum := 0
			for _, sess := range sessions {
				sum += value(sess)
			}
			return float64(sum)
		}))
	}
	now("waza_rpc_connections", "Clients that are connected.", func(*session) int { return 1 })
	now("waza_rpc_requests_in_flight", "Requests that are being served.", (*session).requestsInFlight)
	now("waza_rpc_subscriptions", "Runs that clients receive.", (*session).subscriptions)
	now("waza_rpc_queued_bytes", "Output that clients have yet to read.", (*session).queuedBytes)
	return m
}

// answered counts a request.
func (m *counts) answered(c *call, code int64) {
	if m == nil {
		return
	}
	name := unknownMethod
	if c.method != nil {
		name = c.method.name
	} else if c.server.methods[c.req.Method] != nil {
		name = c.req.Method // refused before it was looked for
	}
	m.requests.WithLabelValues(name, strconv.FormatInt(code, 10)).Inc()
}

func (s *session) requestsInFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inFlight)
}

func (s *session) subscriptions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.followers)
}

func (s *session) queuedBytes() int {
	select {
	case <-s.ready:
		return s.stream.Queued()
	default:
		return 0
	}
}

// headerTimeout is how long a client of the metrics may take to say what it wants.
const headerTimeout = 5 * time.Second

// serveMetrics serves Options.Metrics at /metrics until stop is called. The rules
// of [Server.ListenTCP] hold for the address, and clients show the token as
// "Authorization: Bearer".
func (s *Server) serveMetrics(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.withToken(promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{})))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, WriteTimeout: s.o.WriteTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics are not served any more", "error", err)
		}
	}()
	return func() {
		server.Close()
		<-done
	}
}

func (s *Server) withToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if given := r.Header.Get("Authorization"); s.o.Token != "" && subtle.ConstantTimeCompare([]byte(given), []byte("Bearer "+s.o.Token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
