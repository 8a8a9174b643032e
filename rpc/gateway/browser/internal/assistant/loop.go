package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"waza/runner/executor/browser"
	"waza/runner/executor/model"
	"waza/runner/pause"
	"waza/runner/provider"
	"waza/runner/record"
)

// Limits for the model in one command.
const (
	mostTurns = 25
	mostUses  = 100 // tool calls
)

// Pauses between requests to a model that does not answer.
const (
	firstRetry = time.Second
	lastRetry  = 10 * time.Second
)

// loop executes a command: it asks the model, which uses tools of the extension and then
// answers.
type loop struct {
	owner                             *Assistants
	commandID, extensionID, sessionID string
	text, instructions, model         string
	capabilities                      []string
	history                           []provider.Message
	maxTurns                          int
	patient                           bool // wait while the model does not answer
	stream                            bool
	clock                             *clock
	observer                          observer

	inner    provider.Client
	answers  int // number of the model's answers
	count    int // number of tool calls
	usage    record.Usage
	cached   provider.Cached
	requests int
	asked    string          // model name in the API
	parts    strings.Builder // parts of a streamed answer
	loading  bool            // the last tool call may have loaded a page
	failed   string          // error of the last tool call; empty without one
	took     time.Duration   // duration of the last tool call
}

// observer gets the events of a loop. Methods with the suffix Locked are called with
// Assistants.mu held.
type observer interface {
	// started is called when the model starts to answer, before any tool runs. It can be called
	// again.
	started()
	// blocked is called before retrying a model that does not answer. answered reports whether
	// it answered before.
	blocked(answered bool)
	// part gets a part of a streamed answer.
	part(text string)
	step(browser.Step)
	// clientLocked returns the client for executions; nil when none is connected.
	clientLocked() Client
	// usesLocked sets the running tool; nil when none is running.
	usesLocked(u *use)
}

// outcome executes a command of the user.
func (l *loop) outcome(ctx context.Context) outcome {
	answer, err := l.run(ctx)
	out := outcome{text: l.owner.o.Redact(answer), all: l.owner.o.Redact(l.parts.String()), err: err}
	cause := context.Cause(ctx)
	switch {
	case err == nil && l.failed != "":
		out.status, out.err = Failed, errors.New(l.failed)
	case err == nil:
		out.status = Completed
	case errors.Is(cause, errCancelled), errors.Is(cause, errDeleted):
		out.status = Cancelled
	case errors.Is(cause, errTooLate):
		out.status, out.unavailable = TimedOut, l.answers == 0
		out.err = fmt.Errorf("no answer within %v", l.owner.o.CommandTimeout)
		if out.unavailable {
			l.owner.setDown(l.model, true)
		}
	default:
		out.status, out.unavailable = Failed, isUnavailable(err) || provider.KindOf(err) == provider.Refused
	}
	return out
}

// isUnavailable reports whether the model may answer later.
func isUnavailable(err error) bool {
	switch provider.KindOf(err) {
	case provider.Unreachable, provider.Throttled, provider.Silent:
		return true
	}
	return false
}

// errNoModel is the error of commands without a configured model.
var errNoModel = &provider.Error{Kind: provider.Refused, Message: "waza serve has no model: set model in its configuration"}

// run asks the model and returns its last answer.
func (l *loop) run(ctx context.Context) (string, error) {
	if l.owner.o.Model == nil {
		return "", errNoModel
	}
	var err error
	if l.inner, err = l.owner.o.Model(ctx, l.model); err != nil {
		return "", err
	}
	c := &model.Conversation{
		Client: l, Instructions: l.instructions, MaxTurns: l.maxTurns, History: l.history, Replied: l.replied, Called: l.called,
	}
	all, _ := tools()
	for _, name := range l.capabilities {
		c.Tools = append(c.Tools, model.LiveTool{Tool: all[name], Call: func(
			ctx context.Context, arguments json.RawMessage,
		) (model.ToolResult, error) {
			return l.call(ctx, name, arguments)
		}})
	}
	if l.stream {
		c.Text = l.part
	}
	return c.Ask(ctx, l.text)
}

// Complete implements [provider.Client]. It retries until the model answers or ctx ends.
func (l *loop) Complete(ctx context.Context, r *provider.Request) (*provider.Reply, error) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		before := l.parts.Len()
		reply, err := l.inner.Complete(ctx, r)
		switch {
		case err == nil:
			l.answers++
			l.owner.setDown(l.model, false)
			l.observer.started()
			return reply, nil
		case ctx.Err() != nil:
			return reply, context.Cause(ctx)
		case !l.patient || !isUnavailable(err) || l.parts.Len() > before:
			return reply, err
		}
		l.owner.setDown(l.model, true)
		l.observer.blocked(l.answers > 0)
		if err := pause.For(ctx, wait); err != nil {
			return reply, err
		}
	}
}

// part passes on a part of an answer.
func (l *loop) part(text string) {
	if l.parts.Len() == 0 {
		l.owner.setDown(l.model, false)
		l.observer.started()
	}
	l.parts.WriteString(text)
	l.observer.part(text)
}

// replied records a request to the model.
func (l *loop) replied(reply *provider.Reply, err error) {
	l.usage, l.cached = l.usage.Add(reply.Usage), l.cached.Plus(reply.Cached)
	if reply.Tries > 0 {
		l.requests++
	}
	if reply.Model != "" {
		l.asked = reply.Model
	}
	if reply.Thought != "" {
		l.observer.step(browser.Step{Thought: l.owner.o.Redact(reply.Thought)})
	}
	if reply.Message.Text != "" {
		l.observer.step(browser.Step{Message: l.owner.o.Redact(reply.Message.Text)})
	}
	if err != nil {
		return
	}
	switch reply.Stop {
	case provider.StopLength:
		l.observer.step(browser.Step{Warning: "the answer was cut off at the token limit"})
	case provider.StopRefusal:
		l.observer.step(browser.Step{Warning: "the model or its provider refused to answer"})
	}
}

// called records a tool call, even of an unknown tool.
func (l *loop) called(call provider.Call, result model.ToolResult) {
	t := &record.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Status: "completed", DurationMS: l.took.Milliseconds()}
	if result.IsError {
		t.Status = "failed"
	}
	l.took = 0
	text := l.owner.o.Redact(result.Text)
	if t.Result, _ = json.Marshal(text); json.Valid([]byte(text)) {
		t.Result = json.RawMessage(text)
	}
	l.observer.step(browser.Step{Tool: t})
}

// call executes a tool with the extension. Calls with invalid arguments are not sent to the
// extension.
func (l *loop) call(ctx context.Context, name string, arguments json.RawMessage) (model.ToolResult, error) {
	_, schemas := tools()
	tree, err := schemas.Check(name, arguments)
	if err != nil {
		return model.ToolResult{Text: "error: invalid arguments of " + name + ": " + err.Error(), IsError: true}, nil
	}
	if l.count++; l.count > mostUses {
		return model.ToolResult{Text: fmt.Sprintf("error: this command has reached the limit of %d tool calls", mostUses), IsError: true}, nil
	}
	start := time.Now()
	limit := toolTime(tree, l.owner.o.ToolTimeout)
	r, err := l.use(ctx, name, arguments, limit)
	if err == nil && l.loading && r.isUndelivered() {
		if err = l.awaitPage(ctx); err == nil {
			r, err = l.use(ctx, name, arguments, limit)
		}
	}
	l.took, l.loading = time.Since(start), loadsPage(name, tree)
	if err != nil {
		return model.ToolResult{}, err
	}
	text := r.text(name)
	l.failed = ""
	if r.Status != "success" {
		l.failed = name + ": " + strings.TrimPrefix(text, "error: ")
	}
	return model.ToolResult{Text: text, IsError: r.Status != "success"}, nil
}

// awaitPage waits while a new page loads. The clock of the command does not run meanwhile.
func (l *loop) awaitPage(ctx context.Context) error {
	l.clock.pause()
	defer l.clock.resume()
	return pause.For(ctx, pageTime)
}

// use sends an execution to the extension and waits for its result. While the extension is
// disconnected, it waits for the extension until the time limit. The clock of the command does
// not run meanwhile.
func (l *loop) use(ctx context.Context, tool string, params json.RawMessage, limit time.Duration) (ToolResult, error) {
	a := l.owner
	u := &use{extensionID: l.extensionID, done: make(chan ToolResult, 1), Execution: Execution{
		CommandID: l.commandID, SessionID: l.sessionID, Tool: tool, Params: slices.Clone(params), Timeout: limit,
	}}
	l.clock.pause()
	defer l.clock.resume()
	a.mu.Lock()
	l.observer.usesLocked(u)
	a.sendUseLocked(u, l.observer.clientLocked())
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		l.observer.usesLocked(nil)
		delete(a.uses, u.ID)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-u.done:
		return r, nil
	case <-timer.C:
		return ToolResult{Status: "timeout", Error: fmt.Sprintf("no result within %v", limit)}, nil
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errCancelled) || errors.Is(cause, errDeleted) {
		// The next command starts when the browser is idle.
		grace := time.NewTimer(a.o.CancelTimeout)
		defer grace.Stop()
		select {
		case <-u.done:
		case <-grace.C:
		case <-timer.C:
		case <-a.ctx.Done():
		}
	}
	return ToolResult{}, cause
}

// use is a tool call for an extension. Assistants.mu guards it.
type use struct {
	Execution   // has no ID until it is sent
	extensionID string
	done        chan ToolResult // has a capacity of one
}

// sendUseLocked sends a tool call once. It does nothing without a call or a client.
func (a *Assistants) sendUseLocked(u *use, c Client) {
	if u == nil || c == nil || u.ID != "" {
		return
	}
	u.ID = c.NewID()
	a.uses[u.ID] = u
	c.Happened(u.Execution)
}

// Result passes the result of a tool to the waiting command; false when none waits. The id is
// that of the [Execution] or of the command.
func (a *Assistants) Result(by Client, id string, r ToolResult) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.uses[id]
	if u == nil || u.extensionID != by.ExtensionID() {
		u = nil
		for _, other := range a.uses {
			if other.CommandID == id && other.extensionID == by.ExtensionID() {
				u = other
			}
		}
	}
	if u == nil {
		return false
	}
	delete(a.uses, u.ID)
	u.done <- r
	return true
}
