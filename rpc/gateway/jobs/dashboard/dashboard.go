// Package dashboard serves the pages that people open in a browser. The dashboard at / is an
// ordinary client of /ws and /rpc. Reports of runs are at /runs/ID and /compare. Create a
// [Dashboard] with [New], and mount it with [Dashboard.Handle].
package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"waza/rpc/access"
	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs/token"
	"waza/runner/compare"
	"waza/runner/pause"
	"waza/runner/record"
)

// Options configure a dashboard. All except Ledger, Log and Secure are required.
type Options struct {
	// Tokens creates and checks the tokens of visitors.
	Tokens *token.Issuer
	// Run finds a run. The error is [record.ErrRunNotFound] when the run does not exist.
	Run func(id string) (record.Handle, error)
	// Sees reports whether the owner of a token can see an existing run.
	Sees func(ctx context.Context, c *token.Claims, runID string) (bool, error)
	// Ledger counts the comparisons with each baseline; nil counts nothing.
	Ledger compare.Ledger
	// Secure restricts the cookie to TLS.
	Secure bool
	// Log gets structured records without codes and tokens; nil discards them.
	Log *slog.Logger
}

// Dashboard serves the pages. It is safe for concurrent use.
type Dashboard struct {
	o         Options
	log       *slog.Logger
	strangers *slog.Logger // the log of clients that have not shown a secret
	codes     codes
	guesses   access.Guesses
	rendering chan struct{} // holds a value for each report that is being written
}

// mostReports is how many reports are written at once. Further reports wait.
const mostReports = 2

// New returns a dashboard.
func New(o Options) *Dashboard {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	log := o.Log.With("door", "jobs")
	return &Dashboard{o: o, log: log, strangers: access.LimitLog(log), rendering: make(chan struct{}, mostReports)}
}

// Handle adds the pages to a door's handler.
func (d *Dashboard) Handle(mux *http.ServeMux) {
	for pattern, f := range staticFiles() {
		mux.Handle("GET "+pattern, f)
	}
	mux.HandleFunc("POST /api/auth/exchange", d.exchange)
	mux.HandleFunc("POST /api/auth/page", d.admit)
	mux.HandleFunc("GET "+runsPath+"{id}", d.report)
	mux.HandleFunc("GET "+comparePath, d.compare)
}

// NewCode creates a code that the page can exchange for tokens of the owner, once and within ten
// minutes.
func (d *Dashboard) NewCode() string { return d.codes.add(time.Now()) }

// maxBody is the maximum number of bytes that are read from a request's body.
const maxBody = 4 << 10

// exchange returns tokens of the owner for a code.
func (d *Dashboard) exchange(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil || body.Code == "" {
		door.Reply(w, http.StatusBadRequest, problem{"body must be a JSON object with the field code"})
		return
	}
	if !d.codes.take(body.Code, time.Now()) {
		if pause.For(r.Context(), d.guesses.Wrong(time.Now())) != nil {
			return
		}
		d.strangers.Warn("wrong code", "client", r.RemoteAddr)
		door.Reply(w, http.StatusUnauthorized, problem{"the code is invalid, expired or already used"})
		return
	}
	pair, err := d.o.Tokens.Create(r.Context(), token.Grant{})
	if err == nil {
		err = d.SetCookie(r.Context(), w, pair.Access)
	}
	if err != nil {
		d.log.Error("token could not be created", "error", err)
		door.Reply(w, http.StatusInternalServerError, problem{"token could not be created"})
		return
	}
	door.Reply(w, http.StatusOK, pair)
}

// admit sets the cookie for a page after its user has pasted an access token.
func (d *Dashboard) admit(w http.ResponseWriter, r *http.Request) {
	text, _ := door.Bearer(r)
	err := d.SetCookie(r.Context(), w, text)
	switch {
	case errors.Is(err, token.ErrStore):
		d.log.Error("token check failed", "error", err)
		door.Reply(w, http.StatusInternalServerError, problem{token.ErrStore.Error()})
	case err != nil:
		w.Header().Set("WWW-Authenticate", "Bearer")
		door.Reply(w, http.StatusUnauthorized, problem{err.Error()})
	default:
		door.Reply(w, http.StatusOK, struct{}{})
	}
}

type problem struct {
	Error string `json:"error"`
}
