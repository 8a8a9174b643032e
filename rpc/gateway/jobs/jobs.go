// Package jobs is the door of programs and dashboards. It serves the job stream at /ws and /api,
// JSON-RPC over WebSocket at /rpc, the dashboard at /, health checks at /healthz and /readyz,
// and metrics at /metrics. Start with [New], and run [Server.Door].
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// CodeUnauthenticated closes connections with a missing or invalid token. Browsers show the code
// of a closed WebSocket, but not the HTTP status of a refused one.
const CodeUnauthenticated = 4001

const (
	// subprotocol is the server's subprotocol at /rpc.
	subprotocol = "jsonrpc"
	// tokenProtocol precedes the token among the subprotocols of clients that cannot send
	// headers, such as browsers.
	tokenProtocol = "bearer."
)

// Options configure a server.
type Options struct {
	// ServeRPC serves JSON-RPC over a stream with one message per line until the stream ends,
	// and closes it. who holds the claims of the client's access token, and is nil for a client
	// that showed Token. Without ServeRPC, the server has no /rpc.
	ServeRPC func(ctx context.Context, stream io.ReadWriteCloser, who *token.Claims) error
	// Ready returns why the server accepts no work at the moment, or nil. A nil Ready means that
	// it always accepts work.
	Ready func() error
	// Gatherer gathers the metrics for /metrics. Without it, the server has no /metrics.
	Gatherer prometheus.Gatherer
	// Metrics gets the metrics of the door; nil keeps none.
	Metrics prometheus.Registerer
	// Log gets structured records; nil discards them.
	Log *slog.Logger
	// Token is an alternative to access tokens for clients of /rpc, and for clients of /metrics.
	// The caller stores it.
	Token string
	// Tokens checks the access tokens of /rpc and the job stream. At /metrics, tokens of the
	// owner and of admins work like Token. Nil means that access tokens are not accepted.
	Tokens *token.Issuer
	// Board holds the jobs. The caller runs its Serve method. Without it, the server has no job
	// stream; with it, Tokens is required.
	Board *board.Board
	// Dashboard serves the pages for people. Without it, the server has none.
	Dashboard *dashboard.Dashboard
}

// Server is the jobs door.
type Server struct {
	config  Config
	options Options
	log     *slog.Logger
	door    *door.Door
	crowd   crowd // at /ws
	callers crowd // at /rpc, with access tokens
	guard   guard
	guesses access.Guesses
}

// New returns a server, which opens nothing yet. A connection to /rpc can execute code, so
// ServeRPC requires a Token.
func New(c Config, o Options) (*Server, error) {
	if o.ServeRPC != nil && o.Token == "" {
		return nil, errors.New("jobs: connections to /rpc can execute code and need a token: set token_file")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
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
		mux.Handle("GET /metrics", s.forToken(promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: 4})))
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

// Door returns the door, which listens and serves.
func (s *Server) Door() *door.Door { return s.door }

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintln(w, text)
}

// ready answers whether the server accepts work.
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

// rpc serves JSON-RPC to a client with a token.
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
		c.Authenticate()
		if !c.Identify("rpc " + c.Addr()) {
			return
		}
		stream := c.Stream()
		defer stream.Close()
		c.Log().Info("client connected")
		err := s.options.ServeRPC(ctx, stream, who)
		c.Log().Info("client disconnected", "cause", err)
	})
}

// authenticate returns the claims of a client's access token at /rpc, or nil when the client
// showed the token of the server. For a client that showed neither, it closes the connection and
// returns false.
func (s *Server) authenticate(ctx context.Context, c *door.Conn) (who *token.Claims, ok bool) {
	given := tokens(c.Request())
	who, err := s.admits(ctx, given)
	switch {
	case err == nil:
		return who, true
	case len(given) == 0, errors.Is(err, token.ErrExpired), errors.Is(err, token.ErrRevoked): // not guessed
		c.Close(CodeUnauthenticated, err.Error())
		return nil, false
	}
	if pause.Unless(ctx, c.Done(), s.guesses.Wrong(time.Now())) == nil {
		c.Log().Warn("wrong token", board.EventKey, "wrong_token")
		c.Close(CodeUnauthenticated, "the token is wrong")
	}
	return nil, false
}

// admits returns the claims of the first valid token, or nil when that is the token of the
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

// tokens returns the tokens of a request, at most one of each form: the header Authorization,
// the query parameter token, and the subprotocol bearer.TOKEN.
func tokens(r *http.Request) []string {
	var list []string
	if token, ok := door.Bearer(r); ok {
		list = append(list, token)
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

// forToken passes requests with the server's token, or one of its owner or an admin, to h. Other
// users of this machine reach the address, too, so its own requests need one.
func (s *Server) forToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := tokens(r)
		if who, err := s.admits(r.Context(), given); err == nil && (who == nil || who.IsOwner() || who.IsAdmin()) {
			h.ServeHTTP(w, r)
			return
		}
		if len(given) > 0 && pause.For(r.Context(), s.guesses.Wrong(time.Now())) != nil {
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "token is missing or invalid", http.StatusUnauthorized)
	})
}
