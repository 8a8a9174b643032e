package assistant

import (
	"context"
	"fmt"
	"slices"
	"time"

	"waza/eval/text"
	"waza/rpc/gateway/store"
	"waza/runner/executor/browser"
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
// assistant is active. It returns the started one; nil without one.
func (as *assistant) pumpLocked() *command {
	a := as.owner
	if as.current != nil || a.closing || !as.row.Deleted.IsZero() {
		return nil
	}
	for _, c := range as.waiting {
		x := a.extensionLocked(c.ExtensionID)
		if x == nil || len(x.clients) == 0 || x.slot() != nil {
			continue
		}
		c.removeLocked()
		as.current = c
		x.busy++
		c.startLocked()
		return c
	}
	return nil
}

// await waits until the client of a started command has its status, so that the status precedes
// the answers to later messages of the client. It does nothing for nil. The caller does not hold
// Assistants.mu.
func (c *command) await() {
	if c != nil {
		<-c.announced
	}
}

// removeLocked removes a command from the waiting ones.
func (c *command) removeLocked() {
	c.expiry.Stop()
	c.assistant.waiting = slices.DeleteFunc(c.assistant.waiting, func(other *command) bool { return other == c })
}

// startLocked executes a command, or retries it while the model does not answer.
func (c *command) startLocked() {
	a := c.owner
	var ctx context.Context
	ctx, c.cancel = context.WithCancelCause(a.ctx)
	c.clock = newClock(a.o.CommandTimeout, func() { c.cancel(errTooLate) })
	c.announced = make(chan struct{})
	down := a.isDownLocked(c.assistant.row.Model)
	l := &loop{
		owner: a, commandID: c.ID, extensionID: c.ExtensionID, sessionID: c.SessionID, text: c.Text,
		instructions: c.assistant.row.Instructions, model: c.assistant.row.Model, capabilities: c.assistant.row.Capabilities,
		clock: c.clock, maxTurns: mostTurns, patient: true, stream: c.Stream, observer: c,
	}
	a.all.Go(func() {
		l.history = a.Sessions.history(l.sessionID)
		if !down {
			c.recordStart()
		}
		close(c.announced)
		out := l.outcome(ctx)
		c.cancel(nil)
		c.clock.stop()
		a.mu.Lock()
		defer a.mu.Unlock()
		c.endLocked(out)
	})
}

// record writes the command with another status, and then gives it that status. Only the
// goroutine of the command calls it. The error is a [*Fault].
func (c *command) record(status string) error {
	a := c.owner
	a.mu.Lock()
	row := *c.Command
	a.mu.Unlock()
	if row.Status = status; status == Executing && row.StartedAt.IsZero() {
		row.StartedAt = time.Now()
	}
	err := a.ledger.do(func() error {
		if f := a.ledger.saved(func() error { return a.o.Store.UpdateCommand(a.writing, &row) }); f != nil {
			return f
		}
		return nil
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c.Status, c.StartedAt, c.executing = status, row.StartedAt, status == Executing
	return nil
}

// recordStart stores that the execution of a command starts. It precedes any effect, so that no
// command is executed twice.
func (c *command) recordStart() {
	a := c.owner
	a.mu.Lock()
	executing := c.executing
	a.mu.Unlock()
	if executing {
		return
	}
	if err := c.record(Executing); err != nil {
		c.cancel(err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !c.said {
		c.said = true
		c.addMessageLocked("user", c.Text)
	}
	c.sendLocked(c.statusLocked())
	if len(c.assistant.waiting) > 0 {
		c.assistant.queueChangedLocked(c)
	}
}

// saveLocked queues a write of the command's row. then is called after it, without
// Assistants.mu.
func (c *command) saveLocked(then func(*Fault)) {
	a, row := c.owner, *c.Command
	a.ledger.write(func() error { return a.o.Store.UpdateCommand(a.writing, &row) }, then)
}

// unsaved reports a failed write to the client of the command. It does nothing without a fault.
func (c *command) unsaved(f *Fault) {
	if f == nil {
		return
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.sendLocked(Failure{CommandID: c.ID, Fault: f})
}

// endLocked stores the end of a command that no longer waits, reports it, and starts the next one.
func (c *command) endLocked(out outcome) {
	a := c.owner
	c.Status, c.Result, c.EndedAt = out.status, text.Clip(out.text, mostKept), time.Now()
	if out.err != nil && out.status != Cancelled {
		c.Error = text.Clip(a.o.Redact(out.err.Error()), mostError)
	}
	a.metrics.WithLabelValues(out.status).Inc()
	if (out.status == Completed || out.status == Failed) && out.text != "" {
		c.addMessageLocked("assistant", c.Result)
	}
	c.Reported = c.clientLocked() != nil
	c.assistant.ending = append(c.assistant.ending, c)
	c.saveLocked(func(f *Fault) {
		a.mu.Lock()
		defer a.mu.Unlock()
		c.endedLocked(out, f)
	})
}

// endedLocked reports the end of a command, which is in the store unless the write failed.
func (c *command) endedLocked(out outcome, f *Fault) {
	a, as := c.owner, c.assistant
	as.ending = slices.DeleteFunc(as.ending, func(other *command) bool { return other == c })
	client := c.clientLocked()
	if reported := client != nil; reported != c.Reported { // it left or arrived meanwhile
		c.Reported = reported
		c.saveLocked(c.unsaved)
	}
	if client == nil {
		a.unreported = append(a.unreported, c)
		a.unreported = a.unreported[max(0, len(a.unreported)-mostUnreported):]
	} else {
		sendEnd(client, c.Command, out.unavailable, out.all)
		if f != nil {
			client.Happened(Failure{CommandID: c.ID, Fault: f})
		}
	}
	for _, w := range c.watchers {
		if w != client && a.extensionLocked(w.ExtensionID()).has(w) {
			w.Happened(c.statusLocked())
		}
	}
	x := a.extensionLocked(c.ExtensionID)
	if as.current == c {
		as.current = nil
		if x != nil {
			x.busy--
			a.pool.Forget(x.member)
		}
	}
	as.queueChangedLocked(c)
	as.pumpLocked()
	if x != nil {
		a.pool.Offer(x.member)
	}
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

// started implements [observer].
func (c *command) started() { c.recordStart() }

// blocked implements [observer]. A command without any effects waits again.
func (c *command) blocked(answered bool) {
	a := c.owner
	a.mu.Lock()
	waits := c.executing && !answered
	a.mu.Unlock()
	if waits {
		if err := c.record(Queued); err != nil {
			c.cancel(err)
			return
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := c.statusLocked()
	s.Message = "Service degraded: the model does not answer; retrying"
	c.sendLocked(s)
	c.assistant.queueChangedLocked(c)
}

// usesLocked implements [observer].
func (c *command) usesLocked(u *use) { c.use = u }

// part implements [observer].
func (c *command) part(text string) {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.sendLocked(Chunk{CommandID: c.ID, SessionID: c.SessionID, Text: text})
}

// step implements [observer].
func (c *command) step(browser.Step) {}

// addMessageLocked adds a message to the session of a command.
func (c *command) addMessageLocked(role, text string) {
	now := time.Now()
	c.owner.Sessions.add(c.SessionID, c.AssistantID, role, text, now, c.unsaved)
	c.assistant.row.LastActiveAt = now
}

// expireLocked limits the waiting time of a command while its extension is connected and the
// model does not answer.
func (c *command) expireLocked() {
	a := c.owner
	if c.expiry.Running() || c.cancel != nil || a.o.CommandTimeout <= 0 || !a.isDownLocked(c.assistant.row.Model) || c.clientLocked() == nil {
		return
	}
	c.expiry.Set(&a.mu, a.o.CommandTimeout, func() {
		if a.closing {
			return
		}
		c.removeLocked()
		c.endLocked(outcome{status: TimedOut, err: fmt.Errorf("no answer within %v", a.o.CommandTimeout), unavailable: true})
	})
}

// giveUpLocked ends commands that have waited too long for an extension.
func (a *Assistants) giveUpLocked(now time.Time) {
	for _, as := range a.roster.byID {
		for _, c := range slices.Clone(as.waiting) {
			if now.Sub(c.QueuedAt) > queuedLifetime && c.clientLocked() == nil {
				c.removeLocked()
				c.endLocked(outcome{status: TimedOut, err: errAway})
			}
		}
	}
}

// isDownLocked reports whether a model is known not to answer.
func (a *Assistants) isDownLocked(model string) bool { return a.o.Model == nil || a.down[model] }

// setDown records whether a model answers, and limits the waiting time of its commands while it
// does not.
func (a *Assistants) setDown(model string, down bool) {
	if a.markDown(model, down) {
		a.o.Log.Info("model", "model", model, "answers", !down)
	}
}

// markDown is setDown without the log. It returns false if nothing has changed.
func (a *Assistants) markDown(model string, down bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down[model] == down {
		return false
	}
	if delete(a.down, model); down {
		a.down[model] = true
	}
	for _, as := range a.roster.byID {
		if as.row.Model != model || a.closing {
			continue
		}
		for _, c := range as.waiting {
			if down {
				c.expireLocked()
			} else {
				c.expiry.Stop()
			}
		}
	}
	return true
}
