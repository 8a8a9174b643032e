package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/template"
	"waza/eval/text"
	"waza/runner/executor"
)

// Options are the keys of a suite's config for the remote executor.
type Options struct {
	// Agents connected to waza serve that can execute the trials; any by default.
	Remote Choice `yaml:"remote"`
}

// Choice selects the agents that can execute the trials of a suite.
type Choice struct {
	// Ids of the agents that can execute the trials: a UUID, or UUID:TAB for one tab of a
	// browser; any agent by default.
	Clients []string `yaml:"clients"`
	// Tools that an agent must list in addition to the tool of the task.
	Tools []string `yaml:"tools"`
}

// maxToolName is the maximum length of a tool name, in bytes.
const maxToolName = 256

// New returns the remote executor, which uses the agents of hub. With a nil hub, the kind can
// check suites but not be opened.
func New(hub Hub) executor.Kind {
	boards := &boards{hub: hub}
	return executor.Kind{
		Kind: eval.Kind{
			Name: "remote",
			Summary: "Sends trials to agents that connect to `waza serve`, wherever they are. A trial waits until an " +
				"agent with the required tool is free.",
			Options: func() any { return &Options{} },
			Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
			Remote:  true,
		},
		WaitsForAgent: true,
		LocalReason:   func(executor.Settings) string { return "its agents connect to the waza serve of this machine" },
		Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
			if hub == nil {
				return nil, executor.Permanent(errors.New("this program has no connection to a waza server, so it cannot reach agents"))
			}
			return &remote{hub: hub, options: s.Options.(*Options), boards: boards}, nil
		},
	}
}

// IsID reports whether an agent can register with an id: a UUID v4, alone or followed by a colon
// and the name of a tab. A trial would wait forever for any other id.
func IsID(id string) bool { return idForm().MatchString(id) }

var idForm = text.Pattern(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}(:[!-~]{1,128})?$`)

func check(c *eval.Check, o *Options) {
	for i, id := range o.Remote.Clients {
		if !IsID(id) {
			c.Errorf(decode.At("remote", "clients", i), decode.CodeInvalidValue,
				"remote.clients[%d] must be the id of an agent, a UUID v4 or UUID:TAB, got %q", i, text.Clip(id, 80))
		}
	}
	for i, tool := range o.Remote.Tools {
		if tool == "" || len(tool) > maxToolName {
			c.Errorf(decode.At("remote", "tools", i), decode.CodeInvalidValue,
				"remote.tools[%d] must have 1 to %d bytes, got %d", i, maxToolName, len(tool))
		}
	}
	c.UnusedByAgents("remote agents are configured where they run")
}

// remote is the executor of one cell of a run. Its only goroutine belongs to its board; Close
// ends it.
type remote struct {
	hub     Hub
	options *Options
	boards  *boards

	mu    sync.Mutex // guards board
	board *board     // shared by the run; nil before the first trial
}

// Admit waits with [Hub.Reserve] for room. The room is a [Slot].
func (r *remote) Admit(ctx context.Context, a *executor.Admission) (executor.Room, error) {
	w, err := r.want(a)
	if err != nil {
		return nil, executor.Permanent(err)
	}
	left := r.boardOf(a).Wait(w)
	slot, err := r.hub.Reserve(ctx, w)
	left()
	if noTool := (*NoToolError)(nil); errors.As(err, &noTool) {
		return nil, executor.Permanent(err)
	}
	if err != nil {
		return nil, err
	}
	return slot, nil
}

// want returns which agents can execute an attempt.
func (r *remote) want(a *executor.Admission) (*Want, error) {
	tool, err := a.Task.Expand(toolOf(a.Task), a.Vars(a.Attempt), eval.MaxExpandedBytes)
	if err != nil {
		return nil, err
	}
	if tool == "" || len(tool) > maxToolName {
		return nil, fmt.Errorf("inputs.tool must have 1 to %d bytes, got %d", maxToolName, len(tool))
	}
	return &Want{
		ID: executor.AttemptID(a.Order, a.Attempt), Tool: tool, Tools: r.options.Remote.Tools, Clients: r.options.Remote.Clients,
		Priority: priorityOf(a.Task),
	}, nil
}

func (r *remote) boardOf(a *executor.Admission) *board {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.board == nil {
		r.board = r.boards.join(a.RunID, a.Logf)
	}
	return r.board
}

// Execute sends the attempt to the agent that has reserved room for it.
func (r *remote) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	slot, ok := t.Room.(Slot)
	if !ok {
		return executor.Outcome{}, executor.Permanent(errors.New("the trial was not admitted"))
	}
	e, err := evaluation(t)
	if err != nil {
		return executor.Outcome{}, executor.Permanent(err)
	}
	if ctx.Err() != nil { // a text is too long
		return executor.Outcome{}, context.Cause(ctx)
	}
	asked := cmp.Or(t.Prompt, string(e.Input))
	t.Transcript.Message("user", asked)
	start := time.Now()
	answer, err := slot.Evaluate(ctx, e, (&updates{trial: t}).publish)
	if err != nil {
		return executor.Outcome{}, err
	}
	return outcome(t, answer, time.Since(start))
}

// Close ends the reports about waiting trials.
func (r *remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.board != nil {
		r.boards.leave(r.board)
		r.board = nil
	}
	return nil
}

// defaultTool is the tool of tasks that name none.
const defaultTool = "chat"

func toolOf(t *eval.Task) string {
	if t.Inputs.Tool == "" {
		return defaultTool
	}
	return t.Inputs.Tool
}

func priorityOf(t *eval.Task) string {
	if t.Inputs.Priority == "" {
		return "normal"
	}
	return t.Inputs.Priority
}

// evaluation returns the request to the agent.
func evaluation(t *executor.Trial) (*Evaluation, error) {
	in := &t.Task.Inputs
	value := template.ExpandTexts(in.Input, t.Expand)
	if value == nil {
		value = map[string]string{"message": t.Prompt}
	}
	input, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("inputs.input: %w", err)
	}
	e := &Evaluation{
		ID: executor.AttemptID(t.Order, t.Attempt), Name: t.Task.Name, URL: t.Expand(in.URL), Tool: t.Expand(toolOf(t.Task)),
		Input: input, Timeout: max(1, t.Timeout.Milliseconds()),
		Metadata: Metadata{
			Tags: append([]string{}, t.Task.Tags...), Retries: max(0, t.MaxAttempts-1) + t.RetryErrors,
			Priority: priorityOf(t.Task),
		},
	}
	if t.Model != "" {
		if e.Model, err = json.Marshal(map[string]string{"main_model": t.Model}); err != nil {
			return nil, err
		}
	}
	return e, nil
}
