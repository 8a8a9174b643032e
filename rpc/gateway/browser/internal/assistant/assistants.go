// Package assistant manages the browser assistants of a user, their sessions and commands, and
// the loop in which a model executes a command with the tools of an extension. Start with [New];
// pass connections of extensions to [Assistants.Connect], and let evaluations use the
// [Assistants], which are a [browser.Hub].
//
//	Submit ─► row in the store ─► queue of the assistant ─► one at a time: model ◄─► tools ─► Execution to the extension
//	                                                                            Result ◄─ the extension's answer
package assistant

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/internal/lease"
	"waza/rpc/gateway/store"
	"waza/runner/pause"
	"waza/runner/provider"
)

// Store keeps assistants, sessions and commands. [store.Assistants] implements it.
type Store interface {
	All(ctx context.Context) ([]store.Assistant, error)
	Add(ctx context.Context, a store.Assistant) error
	Activate(ctx context.Context, id string, at time.Time) error
	Delete(ctx context.Context, id string, at time.Time) error

	AddSession(ctx context.Context, s store.Session) error
	Session(ctx context.Context, id string) (store.Session, bool, error)
	Sessions(ctx context.Context, assistantID string, archived bool, limit, offset int) ([]store.Session, error)
	Archive(ctx context.Context, s store.Session, at, expires time.Time) error
	AddMessage(ctx context.Context, s store.Session, m store.Message, expires time.Time) error
	Messages(ctx context.Context, sessionID string, most, mostBytes int) ([]store.Message, error)
	Sweep(ctx context.Context, deletedBefore time.Time) (int64, error)

	AddCommand(ctx context.Context, c *store.Command) error
	UpdateCommand(ctx context.Context, c *store.Command) error
	OpenCommands(ctx context.Context) ([]*store.Command, error)
	EndedCommand(ctx context.Context, id, extensionID string) (*store.Command, error)
}

// Options configure [New]. Store is required; a number or time of 0 means no limit.
type Options struct {
	Store Store
	// Model returns a client for a model; an empty name means the default model. Nil means that
	// no model is configured.
	Model func(ctx context.Context, name string) (provider.Client, error)
	// Redact removes keys from a text; nil removes none.
	Redact func(text string) string
	// Log gets structured records; nil discards them.
	Log *slog.Logger
	// Metrics can be nil.
	Metrics prometheus.Registerer

	MaxAssistants        int           // existing assistants
	MaxCapabilities      int           // per assistant
	MaxWaiting           int           // waiting commands per assistant
	MaxTextChars         int           // per command
	MaxNameChars         int           // per assistant
	MaxInstructionsChars int           // per assistant
	CommandTimeout       time.Duration // for a command, without the time of its tools
	ToolTimeout          time.Duration // for a tool, unless its call sets a different one
	CancelTimeout        time.Duration // until a cancelled command ends without the answer of its tool
	SessionLifetime      time.Duration // for sessions that are not archived, from their last message
}

// Assistants executes the commands of a user with his assistants. It is safe for concurrent use.
// It owns the queues of commands and the connections of extensions, which mu guards together,
// because the end of one command starts the next one with a connected extension. It has one
// goroutine per active command, one that writes to the store, and one that deletes expired
// sessions; Close waits for them. A goroutine that holds mu neither writes to the store nor waits
// for the ledger.
type Assistants struct {
	o       Options
	ctx     context.Context // context of all commands
	writing context.Context // context of writes, which Close does not cancel
	cancel  context.CancelCauseFunc
	all     sync.WaitGroup
	metrics *prometheus.CounterVec // finished commands, by status
	ledger  *ledger

	// Sessions are the sessions of the assistants.
	Sessions *Sessions

	mu         sync.Mutex      // guards the fields below and their contents
	roster     roster          // existing assistants
	pool       *pool           // extensions, and trials that wait for one
	unreported []*command      // commands that ended while their client was disconnected, oldest first
	uses       map[string]*use // tool calls that extensions work on, by id
	down       map[string]bool // models that do not answer
	closing    bool
}

// assistant is an existing assistant with its commands. Assistants.mu guards it.
type assistant struct {
	owner   *Assistants
	row     store.Assistant
	waiting []*command
	current *command   // active command, or the one that is retried while the model does not answer; nil without one
	ending  []*command // commands whose end is not stored yet
}

// errInterrupted is the error of a command that was active when the server ended.
var errInterrupted = errors.New("interrupted: the server stopped during the command")

// New loads the assistants and commands from the store. Commands that were active when the
// previous server ended fail. Waiting commands continue to wait for their extension. The caller
// must call Close.
func New(o Options) (*Assistants, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	a := &Assistants{
		o: o, roster: roster{byID: map[string]*assistant{}}, uses: map[string]*use{}, down: map[string]bool{},
		metrics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waza_browser_commands_total", Help: "Finished commands to browser assistants, by status.",
		}, []string{"status"}),
	}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.writing = context.WithoutCancel(a.ctx)
	a.pool = lease.New(&a.mu, a.rules())
	if err := prometheus.WrapRegistererWith(nil, o.Metrics).Register(a.metrics); err != nil {
		return nil, err
	}
	if err := a.load(); err != nil {
		return nil, err
	}
	a.ledger = newLedger(o.Log)
	a.Sessions = &Sessions{ctx: a.ctx, store: o.Store, lifetime: o.SessionLifetime, ledger: a.ledger, exists: func(id string) *Fault {
		a.mu.Lock()
		defer a.mu.Unlock()
		_, f := a.roster.find(id)
		return f
	}}
	a.all.Go(a.sweep)
	return a, nil
}

// load loads the state that the previous server left.
func (a *Assistants) load() error {
	rows, err := a.o.Store.All(a.ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		a.roster.add(&assistant{owner: a, row: row})
	}
	commands, err := a.o.Store.OpenCommands(a.ctx)
	if err != nil {
		return err
	}
	for _, row := range commands {
		c := &command{Command: row, assistant: a.roster.byID[row.AssistantID], owner: a}
		switch {
		case !row.EndedAt.IsZero():
			a.unreported = append(a.unreported, c)
			continue
		case c.assistant == nil:
			row.Status, row.Error = Cancelled, "the assistant was deleted"
		case row.Status == Queued:
			c.assistant.waiting = append(c.assistant.waiting, c)
			continue
		default:
			row.Status, row.Error = Failed, errInterrupted.Error()
		}
		row.EndedAt = time.Now()
		a.metrics.WithLabelValues(row.Status).Inc()
		if err := a.o.Store.UpdateCommand(a.ctx, row); err != nil {
			return err
		}
		a.unreported = append(a.unreported, c)
	}
	return nil
}

// sweepEvery is how often expired sessions are deleted.
const sweepEvery = time.Hour

// sweep deletes expired sessions until Close.
func (a *Assistants) sweep() {
	for {
		if n, err := a.o.Store.Sweep(a.ctx, time.Now().Add(-a.o.SessionLifetime)); err != nil && a.ctx.Err() == nil {
			a.o.Log.Error("expired sessions could not be deleted", "error", err)
		} else if n > 0 {
			a.o.Log.Info("expired sessions deleted", "sessions", n)
		}
		if pause.For(a.ctx, sweepEvery) != nil {
			return
		}
		a.mu.Lock()
		a.giveUpLocked(time.Now())
		a.mu.Unlock()
	}
}

// Close ends active commands, which fail, and waits for them. Connected clients get their
// status. The next server executes the waiting commands.
func (a *Assistants) Close() {
	a.mu.Lock()
	a.closing = true
	for _, as := range a.roster.byID {
		for _, c := range as.waiting {
			c.expiry.Stop()
		}
	}
	a.mu.Unlock()
	a.cancel(errInterrupted)
	a.all.Wait()
	a.ledger.close()
}
