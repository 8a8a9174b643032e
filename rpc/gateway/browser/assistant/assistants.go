// Package assistant manages the browser assistants of a user, their sessions and commands, and
// the loop in which a model executes a command with the tools of an extension. Start with [New];
// pass connections of extensions to [Assistants.Connect], and let evaluations use
// [Assistants.Hub].
//
//	Submit ─► row in the store ─► queue of the assistant ─► one at a time: model ◄─► tools ─► Execution to the extension
//	                                                                            Result ◄─ the extension's answer
package assistant

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/store"
	"waza/runner/provider"
)

// Options configure [New]. Store is required; a number or time of 0 means no limit.
type Options struct {
	Store store.Assistants
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

// Assistants holds the assistants of a user. It is safe for concurrent use. It has one goroutine
// per active command, and one that deletes expired sessions; Close waits for them.
type Assistants struct {
	o       Options
	ctx     context.Context // context of all commands
	cancel  context.CancelCauseFunc
	all     sync.WaitGroup
	metrics *prometheus.CounterVec // finished commands, by status

	mu         sync.Mutex // guards the fields below and their contents, and keeps them consistent with the tables
	byID       map[string]*assistant
	active     *assistant // nil when no assistant is active
	extensions map[string]*extension
	executions map[string]*use  // running tools, by the id of the Execution
	down       map[string]bool  // models that do not answer
	waiters    []*waiter        // trials that wait for an extension, in order of arrival
	unreported []*store.Command // commands that ended while their client was disconnected, oldest first
	closing    bool
}

// assistant is an existing assistant with its commands. Assistants.mu guards it.
type assistant struct {
	row     store.Assistant
	waiting []*command
	current *command // active command, or the one that is retried while the model does not answer; nil without one
}

// extension is the set of connections with an id. Assistants.mu guards it.
type extension struct {
	id      string
	clients []Client // oldest first; empty while it is disconnected
	busy    int      // number of active commands of the user that use it
	slot    *slot    // reservation by a trial; nil without one
}

// errInterrupted is the error of a command that was active when the server ended.
var errInterrupted = errors.New("interrupted: the server stopped during the command")

// New loads the assistants and commands from the store. Commands that were active when the
// previous server ended fail. Waiting commands continue to wait for their extension. The caller
// must call Close.
func New(o Options) (*Assistants, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}
	a := &Assistants{
		o: o, byID: map[string]*assistant{}, extensions: map[string]*extension{}, executions: map[string]*use{}, down: map[string]bool{},
		metrics: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waza_browser_commands_total", Help: "Finished commands to browser assistants, by status."}, []string{"status"}),
	}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	if o.Metrics != nil {
		if err := o.Metrics.Register(a.metrics); err != nil {
			return nil, err
		}
	}
	if err := a.load(); err != nil {
		return nil, err
	}
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
		as := &assistant{row: row}
		a.byID[row.ID] = as
		if row.Active {
			a.active = as
		}
	}
	commands, err := a.o.Store.OpenCommands(a.ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, row := range commands {
		as := a.byID[row.AssistantID]
		switch {
		case !row.EndedAt.IsZero():
			a.unreported = append(a.unreported, row)
			continue
		case as == nil:
			row.Status, row.Error = Cancelled, "the assistant was deleted"
		case row.Status == Queued:
			as.waiting = append(as.waiting, &command{Command: row, assistant: as, owner: a})
			continue
		default:
			row.Status, row.Error = Failed, errInterrupted.Error()
		}
		row.EndedAt = time.Now()
		a.metrics.WithLabelValues(row.Status).Inc()
		if err := a.o.Store.UpdateCommand(a.ctx, row); err != nil {
			return err
		}
		a.unreported = append(a.unreported, row)
	}
	return nil
}

// sweepEvery is how often expired sessions are deleted.
const sweepEvery = time.Hour

// sweep deletes expired sessions until Close.
func (a *Assistants) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if n, err := a.o.Store.Sweep(a.ctx, time.Now().Add(-a.o.SessionLifetime)); err != nil && a.ctx.Err() == nil {
			a.o.Log.Error("expired sessions could not be deleted", "error", err)
		} else if n > 0 {
			a.o.Log.Info("expired sessions deleted", "sessions", n)
		}
		select {
		case now := <-tick.C:
			a.mu.Lock()
			a.giveUpLocked(now)
			a.mu.Unlock()
		case <-a.ctx.Done():
			return
		}
	}
}

// Close ends active commands, which fail, and waits for them. Connected clients get their
// status. The next server executes the waiting commands.
func (a *Assistants) Close() {
	a.mu.Lock()
	a.closing = true
	for _, as := range a.byID {
		for _, c := range as.waiting {
			c.stopExpiry()
		}
	}
	a.mu.Unlock()
	a.cancel(errInterrupted)
	a.all.Wait()
}

// saved calls do, which writes to the store, and repeats it once when it fails. The fault is
// meant for the client.
func (a *Assistants) saved(do func() error) *Fault {
	err := do()
	if err == nil {
		return nil
	}
	a.o.Log.Warn("writing to the store failed; retrying", "error", err)
	if err = do(); err == nil {
		return nil
	}
	a.o.Log.Error("writing to the store failed", "error", err)
	return &Fault{Code: CodeInternal, Message: "the server cannot write to its database"}
}

// newID returns a random UUID v4.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// extensionLocked finds or creates the extension with an id.
func (a *Assistants) extensionLocked(id string) *extension {
	x := a.extensions[id]
	if x == nil {
		x = &extension{id: id}
		a.extensions[id] = x
	}
	return x
}

// Connect adds a client. The client gets the results of its extension's commands from while it
// was disconnected, and commands that wait for the extension start.
func (a *Assistants) Connect(c Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.extensionLocked(c.ExtensionID())
	x.clients = append(x.clients, c)
	a.reportLocked(x, c)
	for _, as := range a.sortedLocked() {
		open := as.current != nil && as.current.ExtensionID == x.id
		if open {
			c.Happened(as.current.statusLocked())
			as.current.use.sendLocked(a, c)
		}
		for _, w := range as.waiting {
			if w.ExtensionID == x.id {
				c.Happened(w.statusLocked())
				a.expireLocked(w)
				open = true
			}
		}
		if open {
			c.Happened(QueueChanged{as.queueLocked()})
		}
		a.pumpLocked(as)
	}
	a.admitLocked()
}

// reportLocked sends a client the unreported results of its extension's commands.
func (a *Assistants) reportLocked(x *extension, c Client) {
	a.unreported = slices.DeleteFunc(a.unreported, func(row *store.Command) bool {
		if row.ExtensionID != x.id {
			return false
		}
		sendEnd(c, row, false, "")
		row.Reported = true
		_ = a.saved(func() error { return a.o.Store.UpdateCommand(a.ctx, row) })
		return true
	})
}

// Disconnect removes a client. Its commands continue with another client of its extension, or
// when the client reconnects. Its trial ends.
func (a *Assistants) Disconnect(c Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.extensions[c.ExtensionID()]
	if x == nil {
		return
	}
	x.clients = slices.DeleteFunc(x.clients, func(other Client) bool { return other == c })
	if x.slot != nil && x.slot.client == c {
		x.slot.endCommandLocked()
	}
	a.forgetLocked(x)
}

// forgetLocked removes an unused extension.
func (a *Assistants) forgetLocked(x *extension) {
	if len(x.clients) == 0 && x.slot == nil && x.busy == 0 {
		delete(a.extensions, x.id)
	}
}

// clientLocked returns the client that gets the messages for an extension: the preferred one if
// it is connected, or else the newest; nil when none is connected.
func (a *Assistants) clientLocked(extensionID string, preferred Client) Client {
	x := a.extensions[extensionID]
	switch {
	case x == nil || len(x.clients) == 0:
		return nil
	case preferred != nil && slices.Contains(x.clients, preferred):
		return preferred
	}
	return x.clients[len(x.clients)-1]
}

// sortedLocked returns the assistants, oldest first.
func (a *Assistants) sortedLocked() []*assistant {
	all := make([]*assistant, 0, len(a.byID))
	for _, as := range a.byID {
		all = append(all, as)
	}
	slices.SortFunc(all, func(x, y *assistant) int {
		return cmp.Or(x.row.CreatedAt.Compare(y.row.CreatedAt), strings.Compare(x.row.ID, y.row.ID))
	})
	return all
}
