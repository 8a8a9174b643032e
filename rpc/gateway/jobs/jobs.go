// Package jobs is the door of programs and dashboards: the job stream at /ws and /api,
// JSON-RPC over WebSocket at /rpc, the dashboard at /, health at /healthz and /readyz,
// metrics at /metrics.
// Start with [New], and run [Server.Door].
package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"waza/rpc/access"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/dashboard"
	"waza/rpc/gateway/jobs/token"
	"waza/runner/pause"
)

// CodeUnauthenticated closes connections whose token is missing or wrong. A browser does
// not show the HTTP status of a refused WebSocket, but the code of a closed one.
const CodeUnauthenticated = 4001

const (
	// subprotocol is what the server speaks at /rpc.
	subprotocol = "jsonrpc"
	// tokenProtocol comes before the token among the subprotocols of clients that cannot
	// send headers, such as browsers.
	tokenProtocol = "bearer."
)

// Options of a server.
type Options struct {
	// ServeRPC serves JSON-RPC over a stream with one message per line, until it ends, and
	// closes it. who has what the client's access token says, and is nil for a client that
	// has shown Token. Nil means that there is no /rpc.
	ServeRPC func(ctx context.Context, stream io.ReadWriteCloser, who *token.Claims) error
	// Ready says why the server does no work now; nil means that it always does.
	Ready func() error
	// Gatherer has what /metrics shows; nil means that there is no /metrics.
	Gatherer prometheus.Gatherer
	// Metrics gets the metrics of the door; nil keeps none.
	Metrics prometheus.Registerer
	// Log gets structured records; nil discards them.
	Log *slog.Logger
	// Token is what clients of /rpc may show instead of an access token, and those of
	// /metrics that come from other machines. The caller keeps it.
	Token string
	// Tokens checks the access tokens of /rpc and the job stream. At /metrics, those of the
	// owner and of admins are as good as Token. Nil means that there are none.
	Tokens *token.Issuer
	// Board has the jobs, and is served by the caller. Nil means that there is no job
	// stream; otherwise Tokens is required.
	Board *board.Board
	// Dashboard has the pages for people; nil means that there are none.
	Dashboard *dashboard.Dashboard
}

// Server is the jobs door.
type Server struct {
	config  Config
	options Options
	log     *slog.Logger
	door    *door.Door
	crowd   crowd // at /ws
	callers crowd // at /rpc, those that show access tokens
	guard   guard
	guesses access.Guesses
}

// New makes the door, which opens nothing yet. A connection to /rpc executes code, so
// ServeRPC wants a Token.
func New(c Config, o Options) (*Server, error) {
	if o.ServeRPC != nil && o.Token == "" {
		return nil, errors.New("jobs: a connection to /rpc executes code and needs a token: set token_file")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, options: o, log: o.Log.With("door", "jobs")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	if o.ServeRPC != nil {
		mux.HandleFunc("GET /rpc", s.rpc)
	}
	if o.Board != nil {
		mux.HandleFunc("GET /ws", s.ws)
		mux.HandleFunc("GET /api/jobs", s.withToken(s.listJobs))
		mux.HandleFunc("POST /api/jobs/{id}/cancel", s.withToken(s.cancelJob))
		mux.HandleFunc("POST /api/auth/refresh", s.refreshToken)
	}
	if o.Dashboard != nil {
		o.Dashboard.Handle(mux)
	}
	if o.Gatherer != nil {
		mux.Handle("GET /metrics", s.forLocals(promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: 4})))
	}
	var err error
	s.door, err = door.New("jobs", c.Config, door.Options{
		Log: o.Log, Metrics: o.Metrics,
		Authenticated: o.Token != "", AuthenticateHint: "set token_file",
		ShutdownCode: 1001, ShutdownReason: "Server shutting down",
		Subprotocols: []string{subprotocol},
	}, mux)
	return s, err
}

// Door is what listens and serves.
func (s *Server) Door() *door.Door { return s.door }

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintln(w, text)
}

// ready answers whether new work is done.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	err := error(nil)
	switch {
	case s.door.IsClosing():
		err = door.ErrShutdown
	case s.options.Ready != nil:
		err = s.options.Ready()
	}
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	say(w, "ready")
}

// rpc serves JSON-RPC to a client that shows a token.
func (s *Server) rpc(w http.ResponseWriter, r *http.Request) {
	s.door.Accept(w, r, func(ctx context.Context, c *door.Conn) {
		who, ok := s.authenticate(ctx, c)
		switch {
		case !ok:
			return
		case who == nil:
		case !s.callers.enter(who.Subject, s.config.ConnectionsPerUser):
			s.refuseFurther(c, who)
			return
		default:
			defer s.callers.leave(who.Subject)
			defer s.enter(c, who)()
		}
		if !c.Identify("rpc " + c.Addr()) {
			return
		}
		stream := c.Stream()
		defer stream.Close()
		c.Log().Info("client connected")
		err := s.options.ServeRPC(ctx, stream, who)
		c.Log().Info("client has left", "cause", err)
	})
}

// authenticate returns what the access token of a client of /rpc says; nil when it has
// shown the token of the server. It is false for a client that has shown neither, and whose
// connection it closes.
func (s *Server) authenticate(ctx context.Context, c *door.Conn) (who *token.Claims, ok bool) {
	given := tokens(c.Request())
	who, err := s.admits(ctx, given)
	switch {
	case err == nil:
		return who, true
	case len(given) == 0, errors.Is(err, token.ErrExpired), errors.Is(err, token.ErrRevoked): // no guess
		c.Close(CodeUnauthenticated, err.Error())
		return nil, false
	}
	if pause.Unless(ctx, c.Done(), s.guesses.Wrong(time.Now())) == nil {
		c.Log().Warn("wrong token", board.EventKey, "wrong_token")
		c.Close(CodeUnauthenticated, "the token is wrong")
	}
	return nil, false
}

// admits returns what the first valid one of these tokens says; nil for the token of the
// server. The error is that of the last token, or [token.ErrMissing].
func (s *Server) admits(ctx context.Context, given []string) (who *token.Claims, err error) {
	err = token.ErrMissing
	for _, text := range given {
		err = token.ErrInvalid
		if s.options.Token != "" && access.SameSecret(text, s.options.Token) {
			return nil, nil
		}
		if s.options.Tokens == nil {
			continue
		}
		if who, err = s.check(ctx, text); err == nil {
			return who, nil
		}
	}
	return nil, err
}

// tokens lists the tokens that a request shows, at most one of each form: the header
// Authorization, the query parameter token, and the subprotocol bearer.TOKEN.
func tokens(r *http.Request) []string {
	var list []string
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		list = append(list, strings.TrimSpace(token))
	}
	if token := r.URL.Query().Get("token"); token != "" {
		list = append(list, token)
	}
	for p := range strings.SplitSeq(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		if token, ok := strings.CutPrefix(strings.TrimSpace(p), tokenProtocol); ok {
			return append(list, token)
		}
	}
	return list
}

// forLocals lets requests of this machine pass, and of others that show the token. A
// request by a name that is no loopback name may have come through a proxy.
func (s *Server) forLocals(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if ok && here.IP.IsLoopback() && access.IsLoopback(r.Host) {
			h.ServeHTTP(w, r)
			return
		}
		given := tokens(r)
		if who, err := s.admits(r.Context(), given); err == nil && (who == nil || who.IsOwner() || who.IsAdmin()) {
			h.ServeHTTP(w, r)
			return
		}
		if len(given) > 0 && pause.For(r.Context(), s.guesses.Wrong(time.Now())) != nil {
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
	})
}
