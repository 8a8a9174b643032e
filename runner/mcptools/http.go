package mcptools

import (
	"crypto/rand"
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpServer serves the same server over HTTP, for agents that support no other transport. It
// listens only on this machine and accepts only requests with its token. Each request is a
// session of its own, so that no state is kept for clients that disappear.
type httpServer struct {
	listener net.Listener
	token    string
	handler  http.Handler
	server   *http.Server
	serving  sync.WaitGroup // the goroutine of server

	mu     sync.Mutex     // guards closed, and work.Add
	work   sync.WaitGroup // running requests
	closed bool
}

func newHTTPServer(server *mcp.Server) (*httpServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &httpServer{listener: listener, token: rand.Text()}
	d.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxMessage,
	})
	d.server = &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	d.serving.Go(func() { _ = d.server.Serve(listener) }) // returns after Close
	return d, nil
}

func (d *httpServer) url() string { return "http://" + d.listener.Addr().String() + "/mcp" }

// ServeHTTP answers one request.
func (d *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+d.token)) != 1 {
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		return
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.work.Add(1)
	}
	d.mu.Unlock()
	if closed {
		http.Error(w, "the server has ended", http.StatusServiceUnavailable)
		return
	}
	defer d.work.Done()
	d.handler.ServeHTTP(w, r)
}

// close ends all requests and waits for them.
func (d *httpServer) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.server.Close() // also ends the contexts of requests
	d.work.Wait()
	d.serving.Wait()
}
