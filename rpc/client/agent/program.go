package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"waza/eval"
	"waza/eval/reach"
	"waza/runner/executor"
	"waza/runner/executor/command"
	"waza/runner/executor/remote"
	"waza/runner/proc"
	"waza/runner/record"
)

// Program executes evaluations with a program, like the executor command executes trials. The
// program gets the prompt on its standard input and prints the answer. It can report tool calls
// and usage on file descriptor 3. An exit code other than 0 is a failure. All processes that it
// started end with the evaluation.
type Program struct {
	dir  string
	json bool
	exec executor.Executor
	opts command.Options
}

// NewProgram returns a Program that runs a command line of the shell in dir, an absolute path.
// With wholeInput, the program gets the evaluation as JSON instead of the prompt.
func NewProgram(shell, dir string, wholeInput bool) (*Program, error) {
	p := &Program{
		dir: dir, json: wholeInput,
		opts: command.Options{PromptAs: command.Stdin, Command: command.Line{Args: []string{shell}, Shell: true}},
	}
	var err error
	p.exec, err = command.Kind.Open(context.Background(),
		executor.Settings{Suite: &eval.Suite{Places: reach.Places{Dir: dir}}, Options: &p.opts})
	return p, err
}

// result is the result of a successful evaluation.
type result struct {
	Status        string         `json:"status"`
	Output        string         `json:"output"`
	ExecutionTime int64          `json:"executionTime"`
	ToolCalls     []call         `json:"toolCalls,omitempty"`
	Metadata      map[string]any `json:"metadata,omitempty"`
	Usage         *record.Usage  `json:"usage,omitempty"`
}

// call is a use of a tool.
type call struct {
	ID        string          `json:"id,omitempty"`
	Tool      string          `json:"tool"`
	Timestamp time.Time       `json:"timestamp"`
	Duration  int64           `json:"duration"`
	Status    string          `json:"status,omitempty"`
	Args      json.RawMessage `json:"args,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// Do runs the program once. Use it as [Options.Do].
func (p *Program) Do(ctx context.Context, e *remote.Evaluation, status func(message string)) (any, *remote.Fault) {
	ctx, started := proc.WithScope(ctx)
	defer started.End()
	t := p.trial(e, status)
	begin := time.Now()
	out, err := p.exec.Execute(ctx, t)
	r := &result{Status: "success", Output: out.Output, ExecutionTime: time.Since(begin).Milliseconds(), Usage: out.Usage}
	if err != nil {
		if why := context.Cause(ctx); why != nil {
			err = why
		}
		return nil, failed(e, err)
	}
	if out.OutputDropped > 0 {
		r.Metadata = map[string]any{"outputDropped": out.OutputDropped}
	}
	for _, entry := range t.Transcript.Close() {
		if c := entry.Tool; c != nil {
			r.ToolCalls = append(r.ToolCalls, call{
				ID: c.ID, Tool: c.Name, Timestamp: begin.Add(time.Duration(entry.AtMS) * time.Millisecond).UTC(), Duration: max(0, c.DurationMS),
				Status: c.Status, Args: c.Arguments, Result: c.Result,
			})
		}
	}
	r.fit()
	return r, nil
}

// fit makes a large answer small enough for servers: it drops the inputs and outputs of tool
// calls, and if necessary the calls.
func (r *result) fit() {
	for _, drop := range []func(){
		func() {
			for i := range r.ToolCalls {
				r.ToolCalls[i].Args, r.ToolCalls[i].Result = nil, nil
			}
		},
		func() { r.ToolCalls = nil },
	} {
		if b, err := json.Marshal(r); err == nil && len(b) <= maxAnswer {
			return
		}
		drop()
	}
}

// failed returns the error of an evaluation that the program did not complete.
func failed(e *remote.Evaluation, err error) *remote.Fault {
	return &remote.Fault{Code: remote.CodeToolFailed, Message: "Tool execution failed", Data: encode(struct {
		Tool      string    `json:"tool"`
		Error     string    `json:"error"`
		URL       string    `json:"url,omitempty"`
		Timestamp time.Time `json:"timestamp"`
	}{e.Tool, err.Error(), e.URL, time.Now().UTC()})}
}

// trial converts the evaluation to a trial for the executor.
func (p *Program) trial(e *remote.Evaluation, status func(message string)) *executor.Trial {
	var model struct {
		MainModel string `json:"main_model"`
	}
	_ = json.Unmarshal(e.Model, &model) // other servers use different names for models
	order := &record.Order{
		RunID: e.ID, TaskID: e.ID, TaskNum: 1, Num: 1, Model: model.MainModel,
		Task: &eval.Task{ID: e.ID, Name: cmp.Or(e.Name, e.ID)},
	}
	return &executor.Trial{
		Order: order, Attempt: 1, Prompt: p.prompt(e), Dir: func() (string, error) { return p.dir, nil },
		Env:    slices.Clip(append(os.Environ(), "WAZA_EVALUATION_ID="+e.ID, "WAZA_TOOL="+e.Tool, "WAZA_URL="+e.URL)),
		Expand: func(text string) string { return text }, Transcript: executor.NewTranscript(),
		Logf: func(_, format string, args ...any) { status(fmt.Sprintf(format, args...)) },
	}
}

// prompt returns the input of the program.
func (p *Program) prompt(e *remote.Evaluation) string {
	if p.json {
		return string(encode(e)) + "\n"
	}
	var text string
	if json.Unmarshal(e.Input, &text) == nil {
		return text
	}
	var input struct{ Message *string }
	if json.Unmarshal(e.Input, &input) == nil && input.Message != nil {
		return *input.Message
	}
	return string(e.Input)
}
