package assistant

import (
	"context"
	"fmt"
	"slices"
	"time"

	"waza/rpc/gateway/store"
	"waza/runner/executor/browser"
	"waza/runner/provider"
)

// queuedLifetime is how long a command waits for a disconnected extension.
const queuedLifetime = 24 * time.Hour

// mostKept is the maximum size of a stored answer, in bytes.
const mostKept = 256 << 10

// mostUnreported is the maximum number of results that wait for disconnected clients.
const mostUnreported = 1000

// outcome describes the end of a command.
type outcome struct {
	status string
	text   string // answer
	all    string // all parts of a streamed answer
	err    error
	// unavailable means that the model did not answer.
	unavailable bool
}

// pumpLocked starts the next command with a connected extension, unless a command of the
// assistant is active.
func (a *Assistants) pumpLocked(as *assistant) {
	if as.current != nil || a.closing || !as.row.Deleted.IsZero() {
		return
	}
	for _, c := range as.waiting {
		x := a.extensions[c.ExtensionID]
		if x == nil || len(x.clients) == 0 || x.slot != nil {
			continue
		}
		c.removeLocked()
		as.current = c
		x.busy++
		c.startLocked()
		return
	}
}

// removeLocked removes a command from the waiting ones.
func (c *command) removeLocked() {
	c.stopExpiry()
	c.assistant.waiting = slices.DeleteFunc(c.assistant.waiting, func(other *command) bool { return other == c })
}

// startLocked executes a command, or retries it while the model does not answer.
func (c *command) startLocked() {
	a := c.owner
	var ctx context.Context
	ctx, c.cancel = context.WithCancelCause(a.ctx)
	c.clock = newClock(a.o.CommandTimeout, func() { c.cancel(errTooLate) })
	history := a.historyLocked(c.SessionID)
	if !a.isDownLocked(c.assistant.row.Model) {
		c.recordStartLocked()
	}
	l := &loop{
		owner: a, commandID: c.ID, extensionID: c.ExtensionID, sessionID: c.SessionID, text: c.Text,
		instructions: c.assistant.row.Instructions, model: c.assistant.row.Model, capabilities: c.assistant.row.Capabilities,
		clock: c.clock, maxTurns: mostTurns, patient: true, stream: c.Stream, observer: c, history: history,
	}
	a.all.Go(func() {
		out := l.outcome(ctx)
		c.cancel(nil)
		c.clock.stop()
		a.mu.Lock()
		defer a.mu.Unlock()
		c.endLocked(out)
	})
}

// recordStartLocked stores that the execution of a command starts. It precedes any effect, so
// that no command is executed twice.
func (c *command) recordStartLocked() {
	if c.executing {
		return
	}
	a := c.owner
	c.executing = true
	c.Status = Executing
	if c.StartedAt.IsZero() {
		c.StartedAt = time.Now()
	}
	if f := a.saved(func() error { return a.o.Store.UpdateCommand(a.ctx, c.Command) }); f != nil {
		c.cancel(f)
		return
	}
	if !c.said {
		c.said = true
		c.addMessageLocked("user", c.Text)
	}
	a.sendLocked(c, c.statusLocked())
	if len(c.assistant.waiting) > 0 {
		a.queueChangedLocked(c.assistant, c)
	}
}

// endLocked stores the end of a command that no longer waits, and starts the next one.
func (c *command) endLocked(out outcome) {
	a, as := c.owner, c.assistant
	c.Status, c.Result, c.EndedAt = out.status, clip(out.text, mostKept), time.Now()
	if out.err != nil && out.status != Cancelled {
		c.Error = clip(a.o.Redact(out.err.Error()), mostError)
	}
	a.metrics.WithLabelValues(out.status).Inc()
	if (out.status == Completed || out.status == Failed) && out.text != "" {
		c.addMessageLocked("assistant", c.Result)
	}
	client := a.clientLocked(c.ExtensionID, c.client)
	c.Reported = client != nil
	_ = a.saved(func() error { return a.o.Store.UpdateCommand(context.WithoutCancel(a.ctx), c.Command) })
	if client == nil {
		a.unreported = append(a.unreported, c.Command)
		a.unreported = a.unreported[max(0, len(a.unreported)-mostUnreported):]
	} else {
		sendEnd(client, c.Command, out.unavailable, out.all)
	}
	for _, w := range c.watchers {
		if x := a.extensions[w.ExtensionID()]; w != client && x != nil && slices.Contains(x.clients, w) {
			w.Happened(c.statusLocked())
		}
	}
	if as.current == c {
		as.current = nil
		if x := a.extensions[c.ExtensionID]; x != nil {
			x.busy--
			a.forgetLocked(x)
		}
	}
	a.queueChangedLocked(as, c)
	a.pumpLocked(as)
	a.admitLocked()
}

// sendEnd sends a client the result of a command: the answer, complete for a streamed one, and
// the status.
func sendEnd(client Client, row *store.Command, unavailable bool, all string) {
	if row.Status == Completed {
		if row.Stream {
			client.Happened(Chunk{CommandID: row.ID, SessionID: row.SessionID, Text: orElse(all, row.Result), Done: true})
		} else {
			client.Happened(Answered{CommandID: row.ID, SessionID: row.SessionID, Text: row.Result})
		}
	}
	client.Happened(statusOf(row))
	if unavailable {
		message := "the model does not answer: " + row.Error
		if row.Error == errNoModel.Error() {
			message = row.Error
		}
		client.Happened(Failure{CommandID: row.ID, Fault: &Fault{Code: CodeServiceUnavailable, Message: message}})
	}
}

// historyLocked returns the messages of a session in the form for models.
func (a *Assistants) historyLocked(sessionID string) []provider.Message {
	messages, err := a.o.Store.Messages(a.ctx, sessionID, historyMessages, historyBytes)
	if err != nil {
		a.o.Log.Error("reading from the store failed", "error", err)
	}
	var history []provider.Message
	for _, m := range messages {
		if len(history) == 0 && m.Role != string(provider.User) {
			continue // conversations start with the user
		}
		history = append(history, provider.Message{Role: provider.Role(m.Role), Text: m.Content})
	}
	return history
}

// started implements [observer].
func (c *command) started() {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.recordStartLocked()
}

// blocked implements [observer]. A command without any effects waits again.
func (c *command) blocked(answered bool) {
	a := c.owner
	a.mu.Lock()
	defer a.mu.Unlock()
	s := c.statusLocked()
	if c.executing && !answered {
		c.executing, c.Status = false, Queued
		_ = a.saved(func() error { return a.o.Store.UpdateCommand(a.ctx, c.Command) })
		s = c.statusLocked()
	}
	s.Message = "Service degraded: the model does not answer; retrying"
	a.sendLocked(c, s)
	a.queueChangedLocked(c.assistant, c)
}

// clientLocked implements [observer].
func (c *command) clientLocked() Client { return c.owner.clientLocked(c.ExtensionID, c.client) }

// usesLocked implements [observer].
func (c *command) usesLocked(u *use) { c.use = u }

// part implements [observer].
func (c *command) part(text string) {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.owner.sendLocked(c, Chunk{CommandID: c.ID, SessionID: c.SessionID, Text: text})
}

// step implements [observer].
func (c *command) step(browser.Step) {}

// addMessageLocked adds a message to the session of a command.
func (c *command) addMessageLocked(role, text string) {
	a, now := c.owner, time.Now()
	s := store.Session{ID: c.SessionID, AssistantID: c.AssistantID}
	m := store.Message{ID: newID(), Role: role, Content: text, CreatedAt: now}
	_ = a.saved(func() error {
		return a.o.Store.AddMessage(context.WithoutCancel(a.ctx), s, m, now.Add(a.o.SessionLifetime))
	})
	c.assistant.row.LastActiveAt = now
}

// isDownLocked reports whether a model is known not to answer.
func (a *Assistants) isDownLocked(model string) bool { return a.o.Model == nil || a.down[model] }

// expireLocked limits the waiting time of a command while its extension is connected and the
// model does not answer.
func (a *Assistants) expireLocked(c *command) {
	if c.expiry != nil || c.cancel != nil || a.o.CommandTimeout <= 0 || !a.isDownLocked(c.assistant.row.Model) || a.clientLocked(c.ExtensionID, nil) == nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(a.o.CommandTimeout, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if c.expiry != timer || a.closing {
			return
		}
		c.removeLocked()
		c.endLocked(outcome{status: TimedOut, err: fmt.Errorf("no answer within %v", a.o.CommandTimeout), unavailable: true})
	})
	c.expiry = timer
}

// stopExpiry removes that limit. Assistants.mu is held.
func (c *command) stopExpiry() {
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
}

// setDown records whether a model answers.
func (a *Assistants) setDown(model string, down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down[model] == down || a.closing {
		return
	}
	if delete(a.down, model); down {
		a.down[model] = true
	}
	a.o.Log.Info("model", "model", model, "answers", !down)
	for _, as := range a.byID {
		if as.row.Model != model {
			continue
		}
		for _, c := range as.waiting {
			if down {
				a.expireLocked(c)
			} else {
				c.stopExpiry()
			}
		}
	}
}

// giveUpLocked ends commands that have waited too long for an extension.
func (a *Assistants) giveUpLocked(now time.Time) {
	for _, as := range a.byID {
		for _, c := range slices.Clone(as.waiting) {
			if now.Sub(c.QueuedAt) > queuedLifetime && a.clientLocked(c.ExtensionID, nil) == nil {
				c.removeLocked()
				c.endLocked(outcome{status: TimedOut, err: errAway})
			}
		}
	}
}
