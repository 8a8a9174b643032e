package fleet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"waza/cmd/waza/exit"
	"waza/rpc/access"
)

// requestTime limits the time of a request for metrics.
const requestTime = 10 * time.Second

// newRegistry returns a registry with the metrics of the process.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// serveMetrics serves a registry at /metrics, and at /healthz whether the worker reaches its
// fleet, until stop is called. Both contain only numbers, so everyone who can reach the address
// may read them. At a loopback address, the Host header must be a loopback name, too, because a
// web page can point its own name at this machine.
func serveMetrics(address string, r *prometheus.Registry, connected func() bool, stderr io.Writer) (stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, exit.Usagef("give a free address such as localhost:9464", "--metrics %s: %v", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !connected() {
			http.Error(w, "cannot reach the fleet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n") // the client can be gone
	})
	server := &http.Server{Handler: onLoopbackHost(mux), ReadHeaderTimeout: requestTime, WriteTimeout: requestTime, MaxHeaderBytes: 16 << 10}
	fmt.Fprintf(stderr, "waza: metrics at http://%s/metrics\n", l.Addr())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(stderr, "waza: stopped serving metrics: %v\n", err)
		}
	}()
	return func() {
		server.Close()
		<-done
	}, nil
}

// onLoopbackHost rejects requests that reach a loopback address by another name.
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
