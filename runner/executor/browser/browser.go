package browser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/provider"
	"waza/runner/record"
)

const (
	// serverTime is the time limit for the server to list its extensions or assistants.
	serverTime = 5 * time.Second
	// slack is added to the time limit of a command, so that the deadline of the trial expires
	// first.
	slack = 10 * time.Second
	// maxResult is the maximum size of a tool result in a record, in bytes. Of a larger result,
	// such as a screenshot, only the first keptResult bytes are kept.
	maxResult, keptResult = 512 << 10, 2000
)

// New returns the browser executor, which uses the extensions of hub. With a nil hub, the kind
// can check suites but not be opened.
func New(hub Hub) executor.Kind {
	k := executor.Kind{
		Kind: eval.Kind{
			Name: "browser",
			Summary: "Lets a browser assistant carry out the prompts. An assistant is a model that uses a browser page " +
				"through an extension connected to `waza serve`, " +
				"such as `waza browser-agent`. A trial waits until an extension is free, and starts with an empty page and without cookies.",
			Options: func() any { return newOptions() },
			Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
		},
		WaitsForAgent: true,
		LocalReason: func(executor.Settings) string {
			return "its browser extensions connect to the waza serve of this machine"
		},
		Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
			if hub == nil {
				return nil, executor.Permanent(errors.New("this program has no connection to a waza server, so it cannot reach a browser"))
			}
			return newAssistants(hub, s), nil
		},
	}
	if hub != nil {
		k.Preflight = func(ctx context.Context, s executor.Settings) []executor.Finding { return preflight(ctx, hub, s) }
	}
	return k
}

// preflight reports an assistant that the server does not have. Without a server it reports
// nothing.
func preflight(ctx context.Context, hub Hub, s executor.Settings) []executor.Finding {
	named := s.Options.(*Options).Assistant.Named
	if named == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	all, err := hub.Assistants(ctx)
	if err != nil || slices.ContainsFunc(all, func(a *Assistant) bool { return a.Is(named) }) {
		return nil
	}
	known := make([]string, len(all))
	for i, a := range all {
		known[i] = a.Name
	}
	message := fmt.Sprintf("waza serve has no assistant %q", text.Clip(named, maxName))
	if near := decode.Nearest(named, known); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	} else if len(known) > 0 {
		message += "; it has " + text.Names(known)
	}
	return []executor.Finding{{Severity: decode.Warning, Code: decode.CodeInvalidValue, Message: message}}
}

// assistants is the executor of one cell of a run. Its only goroutine belongs to its queue;
// Close ends it.
type assistants struct {
	hub       Hub
	options   *Options
	providers *provider.Pool // nil if costs are not counted

	mu    sync.Mutex             // guards queue
	queue *executor.Queue[*Want] // waiting trials; nil before the first one
}

func newAssistants(hub Hub, s executor.Settings) *assistants {
	return &assistants{hub: hub, options: s.Options.(*Options), providers: s.Providers}
}

// Admit waits with [Hub.Reserve] until an extension is free. The room is a [Slot].
func (x *assistants) Admit(ctx context.Context, a *executor.Admission) (executor.Room, error) {
	w := &Want{ID: executor.AttemptID(a.Order, a.Attempt), Extension: x.options.Extension}
	defer x.queueOf(a).Wait(w)()
	slot, err := x.hub.Reserve(ctx, w)
	if err != nil {
		return nil, err
	}
	return slot, nil
}

func (x *assistants) queueOf(a *executor.Admission) *executor.Queue[*Want] {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.queue == nil {
		x.queue = executor.NewQueue(a.Logf, x.line)
	}
	return x.queue
}

// Close ends the reports about waiting trials.
func (x *assistants) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.queue != nil {
		x.queue.Close()
		x.queue = nil
	}
	return nil
}

// Execute lets the assistant carry out the prompt and the follow-ups in one session. The last
// answer is the output.
func (x *assistants) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	slot, ok := t.Room.(Slot)
	if !ok {
		return executor.Outcome{}, executor.Permanent(errors.New("the trial was not admitted"))
	}
	made, err := x.made(t)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	r := &recorder{assistants: x, trial: t}
	err = t.Converse(ctx, func(ctx context.Context, num int, prompt string) (executor.Outcome, error) {
		if n := utf8.RuneCountInString(prompt); n < 1 || n > maxCommand {
			return r.outcome(), executor.Permanent(fmt.Errorf("the prompt of a browser assistant must have 1 to %d characters, got %d",
				maxCommand, n))
		}
		if ctx.Err() != nil { // a text is too long
			return r.outcome(), context.Cause(ctx)
		}
		t.Transcript.Message("user", prompt)
		c := &Command{
			ID: fmt.Sprintf("%s/%d", executor.AttemptID(t.Order, t.Attempt), num), Text: prompt,
			Assistant: x.options.Assistant.Named, Made: made, MaxTurns: x.options.MaxTurns, Timeout: t.Timeout + slack,
		}
		if end, ok := ctx.Deadline(); ok {
			c.Timeout = time.Until(end) + slack
		}
		answer, err := slot.Execute(ctx, c, r.step)
		r.answered(answer)
		if err != nil {
			return r.outcome(), executor.ProviderFault(err)
		}
		return r.outcome(), nil
	})
	return r.outcome(), err
}

// made returns the assistant that is created for a trial, or nil if the suite names one of the
// user's assistants.
func (x *assistants) made(t *executor.Trial) (*Made, error) {
	a := &x.options.Assistant
	if a.Named != "" {
		return nil, nil
	}
	m := &Made{
		Name: cmp.Or(a.Name, defaultName), Instructions: t.Expand(a.Instructions), Capabilities: a.Capabilities,
		Model: cmp.Or(a.Model, t.Model),
	}
	if len(m.Capabilities) == 0 {
		m.Capabilities = Capabilities
	}
	if n := utf8.RuneCountInString(m.Instructions); n < minInstructions || n > maxInstructions {
		return nil, fmt.Errorf("assistant.instructions must have %d to %d characters, got %d with the values of its variables",
			minInstructions, maxInstructions, n)
	}
	return m, nil
}

// recorder records the actions of an assistant in a trial.
type recorder struct {
	assistants *assistants
	trial      *executor.Trial
	said       string // latest message
	output     string
	usage      record.Usage
	requests   int
}

// step records a step of a command.
func (r *recorder) step(s Step) {
	tr := r.trial.Transcript
	if s.Thought != "" {
		tr.Add(record.Entry{Type: record.EntryThought, Role: "assistant", Text: r.clean(s.Thought)})
	}
	if s.Message != "" {
		r.said = s.Message
		tr.Message("assistant", r.clean(s.Message))
	}
	if s.Tool != nil {
		call := *s.Tool
		call.Arguments, call.Result = r.cleanJSON(call.Arguments), r.cleanJSON(kept(call.Result))
		tr.ToolCall(call)
	}
	if s.Warning != "" {
		tr.Add(record.Entry{Type: record.EntryError, Text: r.clean(s.Warning)})
		r.trial.Logf("warning", "%s", r.clean(s.Warning))
	}
}

// answered records the answer to a command. It does nothing if the answer is nil.
func (r *recorder) answered(a *Answer) {
	if a == nil {
		return
	}
	if r.output = r.clean(a.Text); a.Text != "" && a.Text != r.said {
		r.trial.Transcript.Message("assistant", r.output)
	}
	u := a.Usage
	if p := r.assistants.providers; p != nil {
		u = p.Price(a.Model, u, a.Cached)
	}
	r.usage, r.requests, r.said = r.usage.Add(u), r.requests+a.Requests, ""
}

func (r *recorder) outcome() executor.Outcome {
	out := executor.Outcome{Output: r.output}
	if r.requests > 0 {
		out.Usage = &r.usage
	}
	return out
}

// clean removes keys from recorded text.
func (r *recorder) clean(s string) string {
	if p := r.assistants.providers; p != nil {
		return p.Redactor().Text(s)
	}
	return s
}

func (r *recorder) cleanJSON(raw json.RawMessage) json.RawMessage {
	if p := r.assistants.providers; p != nil && len(raw) > 0 {
		return p.Redactor().JSON(raw)
	}
	return raw
}

// kept returns the part of a result that fits into a record.
func kept(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxResult {
		return raw
	}
	b, err := json.Marshal(map[string]any{"bytes": len(raw), "begins": strings.ToValidUTF8(string(bytes.TrimSpace(raw)[:keptResult]), "")})
	if err != nil {
		return nil
	}
	return b
}
