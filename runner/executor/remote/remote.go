package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
)

// Options are the keys of a suite's config that belong to the remote executor.
type Options struct {
	// Which of the agents that are connected to waza serve may do the trials; any when absent.
	Remote Choice `yaml:"remote"`
}

// Choice says which agents may do the trials of a suite.
type Choice struct {
	// Ids of the agents that may do the trials: a UUID, or UUID:TAB for one tab of a browser; any agent when absent.
	Clients []string `yaml:"clients"`
	// Tools that an agent must list besides the tool of the task.
	Tools []string `yaml:"tools"`
}

// maxToolName bounds the bytes of the name of a tool.
const maxToolName = 256

// New returns the remote executor, whose agents are those that hub knows. A nil hub
// makes a kind that knows suites and opens none.
func New(hub Hub) executor.Kind {
	boards := &boards{hub: hub}
	return executor.Kind{
		Kind: eval.Kind{
			Name:    "remote",
			Summary: "Gives trials to agents that connect to `waza serve`, wherever they are. A trial waits until an agent that has the tool is free.",
			Options: func() any { return &Options{} },
			Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
			Remote:  true,
		},
		Waits: true,
		Open: func(_ context.Context, s executor.Settings) (executor.Executor, error) {
			if hub == nil {
				return nil, executor.Permanent(errors.New("this program has no connection to a waza server, so its agents cannot be reached"))
			}
			return &remote{hub: hub, options: s.Options.(*Options), boards: boards}, nil
		},
	}
}

// uuid matches the ids that agents can register with: a trial would wait for others for ever.
var uuid = text.Pattern(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}(:[!-~]{1,128})?$`)

func check(c *eval.Check, o *Options) {
	for i, id := range o.Remote.Clients {
		if !uuid().MatchString(id) {
			c.Errorf(decode.At("remote", "clients", i), decode.CodeInvalidValue, "remote.clients[%d]: %q is not the id of an agent: a UUID v4, or UUID:TAB", i, text.Clip(id, 80))
		}
	}
	for i, tool := range o.Remote.Tools {
		if tool == "" || len(tool) > maxToolName {
			c.Errorf(decode.At("remote", "tools", i), decode.CodeInvalidValue, "remote.tools[%d]: the name of a tool has 1 to %d bytes, not %d", i, maxToolName, len(tool))
		}
	}
	config := &c.Suite().Config
	for _, unused := range []struct {
		key   string
		given bool
	}{
		{"skill_directories", len(config.SkillDirectories) > 0},
		{"instruction_files", len(config.InstructionFiles) > 0},
		{"mcp_servers", len(config.MCPServers) > 0},
		{"first_event_timeout_seconds", config.FirstEventTimeoutSeconds > 0},
	} {
		if unused.given && c.Has(decode.At(unused.key)) {
			c.Warnf(decode.At(unused.key), decode.CodeNoEffect, "%s has no effect: remote agents are set up where they are", unused.key)
		}
	}
}

// remote is the executor of one cell of a run. Its only goroutine is that of its board,
// which Close ends.
type remote struct {
	hub     Hub
	options *Options
	boards  *boards

	mu    sync.Mutex // guards board
	board *board     // of the run; nil before the first trial
}

// Admit is [Hub.Reserve]. The room is a [Slot].
func (r *remote) Admit(ctx context.Context, a *executor.Admission) (executor.Room, error) {
	w, err := r.want(a)
	if err != nil {
		return nil, executor.Permanent(err)
	}
	left := r.boardOf(a).wait(w)
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

// want says which agents may do an attempt.
func (r *remote) want(a *executor.Admission) (*Want, error) {
	tool, err := a.Task.Expand(toolOf(a.Task), a.Vars(a.Attempt), eval.MaxExpandedBytes)
	if err != nil {
		return nil, err
	}
	if tool == "" || len(tool) > maxToolName {
		return nil, fmt.Errorf("inputs.tool: the name of a tool has 1 to %d bytes, not %d", maxToolName, len(tool))
	}
	return &Want{
		ID: EvaluationID(a.Order, a.Attempt), Tool: tool, Tools: r.options.Remote.Tools, Clients: r.options.Remote.Clients,
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

// Execute gives the attempt to the agent that it was admitted to.
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
	asked := t.Prompt
	if asked == "" {
		asked = string(e.Input)
	}
	t.Transcript.Message("user", asked)
	start := time.Now()
	answer, err := slot.Evaluate(ctx, e, (&updates{trial: t}).take)
	if err != nil {
		return executor.Outcome{}, err
	}
	return outcome(t, answer, time.Since(start))
}

// Close ends what reports for whom trials wait.
func (r *remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.board != nil {
		r.boards.leave(r.board)
		r.board = nil
	}
	return nil
}

// defaultTool is what agents are asked when a task names no tool.
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

// evaluation is what the agent is asked.
func evaluation(t *executor.Trial) (*Evaluation, error) {
	in := &t.Task.Inputs
	value := eval.ExpandTexts(in.Input, t.Expand)
	if value == nil {
		value = map[string]string{"message": t.Prompt}
	}
	input, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("inputs.input: %w", err)
	}
	e := &Evaluation{
		ID: EvaluationID(t.Order, t.Attempt), Name: t.Task.Name, URL: t.Expand(in.URL), Tool: t.Expand(toolOf(t.Task)),
		Input: input, Timeout: max(1, t.Timeout.Milliseconds()),
		Metadata: Metadata{Tags: append([]string{}, t.Task.Tags...), Retries: max(0, t.MaxAttempts-1) + t.RetryErrors, Priority: priorityOf(t.Task)},
	}
	if t.Model != "" {
		if e.Model, err = json.Marshal(map[string]string{"main_model": t.Model}); err != nil {
			return nil, err
		}
	}
	return e, nil
}
