package assistant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/executor/browser"
	"waza/runner/executor/model"
	"waza/runner/provider"
)

// errLeft is the cause for ending the commands of a trial when its extension disconnects.
var errLeft = errors.New("the extension disconnected")

// slot is an extension that a trial has reserved. It implements [browser.Slot], and is the
// [observer] of the trial's commands.
type slot struct {
	owner     *Assistants
	extension *extension
	client    Client
	attempt   string
	session   string
	history   []provider.Message
	report    func(browser.Step) // gets the steps of the command; nil without one

	// Assistants.mu guards the fields below.
	left    bool
	cancel  context.CancelCauseFunc // cancels the command; nil without one
	command string                  // text of the command
	use     *use
}

// Reserve implements [browser.Hub]. Assistants that are created for a trial are not listed, and
// commands of trials are not stored.
func (a *Assistants) Reserve(ctx context.Context, want *browser.Want) (browser.Slot, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(&executor.RetryError{Reason: "the server is shutting down"}) })()
	s, err := a.pool.Reserve(ctx, want)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// clientFor returns a connection of the extension for a trial; nil when it has none.
func (x *extension) clientFor(w *browser.Want) Client {
	if x.id == "" || w.Extension != "" && !strings.EqualFold(w.Extension, x.id) {
		return nil
	}
	for _, c := range slices.Backward(x.clients) {
		if w.Extension != "" || c.Evaluation() {
			return c
		}
	}
	return nil
}

// endCommandLocked ends the command of a trial whose extension has disconnected.
func (s *slot) endCommandLocked() {
	s.left = true
	if s.cancel != nil {
		s.cancel(errLeft)
	}
}

// ExtensionID implements [browser.Slot].
func (s *slot) ExtensionID() string { return s.extension.id }

// Release implements [browser.Slot].
func (s *slot) Release() {
	a := s.owner
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.extension.slot() != s {
		return
	}
	a.pool.GiveBack(s.extension.member, s)
	for _, as := range a.roster.sorted() {
		as.pumpLocked()
	}
}

// Execute implements [browser.Slot].
func (s *slot) Execute(ctx context.Context, c *browser.Command, step func(browser.Step)) (*browser.Answer, error) {
	a := s.owner
	made, err := s.made(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })
	defer stop()
	limit := c.Timeout
	if limit <= 0 {
		limit = a.o.CommandTimeout
	}
	s.report = step
	l := &loop{
		owner: a, commandID: uuid.NewString(), extensionID: s.extension.id, sessionID: s.session, text: c.Text,
		instructions: made.Instructions, model: made.Model, capabilities: made.Capabilities, history: s.history,
		maxTurns: c.MaxTurns, clock: newClock(limit, func() { cancel(errTooLate) }), observer: s,
	}
	defer l.clock.stop()
	status := StatusChanged{CommandID: l.commandID, SessionID: s.session, Status: Executing, Message: "A trial of waza is running"}
	a.mu.Lock()
	if s.left || a.closing {
		a.mu.Unlock()
		return nil, &executor.RetryError{Reason: errLeft.Error()}
	}
	s.cancel, s.command = cancel, c.Text
	s.client.Happened(status)
	a.mu.Unlock()

	answer, err := l.run(ctx)
	cause := context.Cause(ctx)
	if errors.Is(err, model.ErrMaxTurns) {
		s.step(browser.Step{
			Warning: fmt.Sprintf("the model was stopped after %d answers; its last answer still called tools", max(c.MaxTurns, 10)),
		})
		err = nil
	}

	a.mu.Lock()
	s.cancel, s.command = nil, ""
	status.Status, status.Message, status.Result = Completed, "The trial's command is completed", a.o.Redact(answer)
	if err != nil {
		status.Status, status.Message, status.Error = Failed, "The trial's command failed", a.o.Redact(err.Error())
	}
	if !s.left {
		s.client.Happened(status)
	}
	a.mu.Unlock()
	switch {
	case err == nil:
		s.history = append(s.history, provider.Message{Role: provider.User, Text: c.Text},
			provider.Message{Role: provider.Assistant, Text: answer})
		return &browser.Answer{Text: a.o.Redact(answer), Model: l.asked, Usage: l.usage, Cached: l.cached, Requests: l.requests}, nil
	case errors.Is(cause, errLeft), errors.Is(cause, errInterrupted):
		return nil, &executor.RetryError{Reason: cause.Error()}
	case errors.Is(cause, errTooLate):
		return nil, fmt.Errorf("the assistant did not answer within %v, without the time of its tools: %w", limit, executor.ErrTimeout)
	case cause != nil:
		return nil, cause
	}
	return nil, err
}

// made returns the assistant for a command of a trial.
func (s *slot) made(c *browser.Command) (*browser.Made, error) {
	a := s.owner
	if c.Made != nil {
		if f := a.o.checkCapabilities(c.Made.Capabilities); f != nil {
			return nil, executor.Permanent(f)
		}
		return c.Made, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, as := range a.roster.byID {
		if id == c.Assistant || strings.EqualFold(as.row.Name, c.Assistant) {
			return &browser.Made{Name: as.row.Name, Instructions: as.row.Instructions, Capabilities: as.row.Capabilities, Model: as.row.Model}, nil
		}
	}
	return nil, executor.Permanent(fmt.Errorf("assistant %q not found", text.Clip(c.Assistant, 100)))
}

func (s *slot) started()     {}
func (s *slot) blocked(bool) {}
func (s *slot) part(string)  {}

func (s *slot) step(of browser.Step) {
	if s.report != nil {
		s.report(of)
	}
}

func (s *slot) clientLocked() Client {
	if s.left {
		return nil
	}
	return s.client
}

func (s *slot) usesLocked(u *use) { s.use = u }

// shownText is the maximum length of a command in lists, in characters.
const shownText = 200

// Extensions implements [browser.Directory].
func (a *Assistants) Extensions(context.Context) ([]*browser.Extension, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []*browser.Extension{}
	for _, m := range a.pool.All() {
		x := m.Offer
		for _, c := range x.clients {
			e := c.Describe()
			if s := x.slot(); s != nil && s.client == c {
				e.Trial, e.Command = s.attempt, text.Clip(s.command, shownText)
				e.Tool = s.use.name()
			}
			for _, as := range a.roster.sorted() {
				if cur := as.current; cur != nil && cur.executing && cur.clientLocked() == c {
					e.Command, e.Tool = text.Clip(cur.Text, shownText), cur.use.name()
				}
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// name returns the name of the tool; empty when none is running.
func (u *use) name() string {
	if u == nil {
		return ""
	}
	return u.Tool
}

// Assistants implements [browser.Directory].
func (a *Assistants) Assistants(context.Context) ([]*browser.Assistant, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []*browser.Assistant{}
	for _, as := range a.roster.byID {
		p := as.public()
		out := &browser.Assistant{ID: p.ID, Name: p.Name, Status: p.Status, Model: p.Model, Capabilities: p.Capabilities, CreatedAt: p.CreatedAt}
		if !p.LastActiveAt.IsZero() {
			out.LastActiveAt = &p.LastActiveAt
		}
		for _, c := range as.openLocked() {
			info := browser.CommandInfo{ID: c.ID, Text: text.Clip(c.Text, shownText), Since: c.QueuedAt, Extension: c.ExtensionID}
			if c.executing {
				info.Since = c.StartedAt
				out.Executing = &info
			} else {
				out.Queued = append(out.Queued, info)
			}
		}
		all = append(all, out)
	}
	slices.SortFunc(all, func(x, y *browser.Assistant) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

var (
	_ browser.Hub  = (*Assistants)(nil)
	_ browser.Slot = (*slot)(nil)
)
