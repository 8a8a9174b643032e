package microsoft

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"waza/runner/importing/source"
	"waza/runner/internal/given"
	"waza/runner/record"
	"waza/runner/tally"
)

// maxPrompt is the most bytes of the prompt of a trigger test.
const maxPrompt = 1 << 20

var statuses = []string{"passed", "failed", "error", "skipped"}

// A run is a run of a task, which waza calls a trial.
type run struct {
	RunNumber   int                   `json:"run_number"`
	Prompt      string                `json:"prompt"`
	Status      given.Text            `json:"status"`
	DurationMS  *float64              `json:"duration_ms"` // nil means unknown
	Validations map[string]validation `json:"validations"`
	Digest      struct {
		ToolCalls []toolCall `json:"tool_calls"`
		Errors    []string   `json:"errors"`
		Usage     *usage     `json:"usage"`
	} `json:"session_digest"`
	Transcript  []event     `json:"transcript"`
	FinalOutput string      `json:"final_output"`
	ErrorMsg    string      `json:"error_msg"`
	Skills      []skillUse  `json:"skill_invocations"`
	ToolEvents  []toolEvent `json:"tool_events"`
	Usage       *usage      `json:"usage"`
}

type validation struct {
	Type       string      `json:"type"`
	Score      given.Score `json:"score"`
	Weight     float64     `json:"weight"`
	Passed     given.Bool  `json:"passed"`
	Feedback   string      `json:"feedback"`
	Details    any         `json:"details"`
	DurationMS float64     `json:"duration_ms"`
}

type usage struct {
	InputTokens  float64 `json:"input_tokens"`
	OutputTokens float64 `json:"output_tokens"`
}

type toolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Success   *bool           `json:"success"`
}

type toolEvent struct {
	ID         string          `json:"tool_call_id"`
	Name       string          `json:"tool_name"`
	Args       json.RawMessage `json:"args"`
	Result     json.RawMessage `json:"result"`
	Success    *bool           `json:"success"`
	Error      string          `json:"error"`
	DurationMS float64         `json:"duration_ms"`
}

type skillUse struct {
	Name string `json:"name"`
}

// An event is an entry of a transcript.
type event struct {
	Type      string          `json:"type"`
	Content   string          `json:"content"`
	Message   string          `json:"message"`
	CallID    string          `json:"tool_call_id"`
	ToolName  string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"tool_result"`
	Success   *bool           `json:"success"`
}

// check returns an error for values that cannot be counted.
func (r *run) check() error {
	if !slices.Contains(statuses, r.Status.Value) {
		return fmt.Errorf("status %q: expected %s", r.Status.Value, strings.Join(statuses, ", "))
	}
	if r.DurationMS != nil && !isDuration(*r.DurationMS) {
		return fmt.Errorf("duration_ms must be between 0 and 3.2e12, got %g", *r.DurationMS)
	}
	for _, name := range sortedNames(r.Validations) {
		v := r.Validations[name]
		switch {
		case len(name) > source.MaxName || len(v.Type) > source.MaxName:
			return fmt.Errorf("validations: a name has more than %d bytes", source.MaxName)
		case !v.Score.Given:
			return fmt.Errorf("validations.%s.score is missing, expected a number from 0 to 1", name)
		case !v.Passed.Given:
			return fmt.Errorf("validations.%s.passed is missing, expected true or false", name)
		case !(v.Weight <= 1e9 && v.Weight >= -1e9):
			return fmt.Errorf("validations.%s.weight: %g is out of range", name, v.Weight)
		case !isDuration(v.DurationMS):
			return fmt.Errorf("validations.%s.duration_ms must be between 0 and 3.2e12, got %g", name, v.DurationMS)
		}
	}
	for _, u := range []*usage{r.Usage, r.Digest.Usage} {
		if u != nil && !(u.InputTokens >= 0 && u.InputTokens < math.MaxInt64/2 && u.OutputTokens >= 0 && u.OutputTokens < math.MaxInt64/2) {
			return errors.New("usage: a number of tokens is out of range")
		}
	}
	return nil
}

// isDuration reports whether n is a valid number of milliseconds: a century at most.
func isDuration(n float64) bool { return n >= 0 && n <= 3.2e12 }

// count adds a run to its task.
func (t *task) count(r *run) {
	t.numbers = append(t.numbers, r.RunNumber)
	switch r.Status.Value {
	case "passed":
		t.passed++
		t.counted++
	case "failed":
		t.counted++
	}
}

// trial converts the run to a trial. timeouts holds the numbers of the task's trials that timed
// out.
func (r *run) trial(task string, num int, timeouts []int) *record.Trial {
	t := &record.Trial{
		TaskID: task, TrialNum: num, Error: r.ErrorMsg, Untimed: r.DurationMS == nil,
		Prompt: r.Prompt, Output: r.FinalOutput, Graders: []record.Grade{}, Transcript: r.transcript(),
	}
	if !t.Untimed {
		t.DurationMS, t.ExecutorMS = int64(*r.DurationMS), int64(*r.DurationMS)
	}
	switch r.Status.Value {
	case "passed":
		t.Verdict = record.Passed
	case "failed":
		t.Verdict = record.Failed
	case "error":
		t.Verdict = record.Errored
	default:
		t.Verdict = record.Skipped
	}
	for _, name := range sortedNames(r.Validations) {
		v := r.Validations[name]
		if v.Weight <= 0 {
			v.Weight = 1
		}
		t.Graders = append(t.Graders, record.Grade{
			Name: name, Type: v.Type, Score: v.Score.Value, Passed: v.Passed.Value, Weight: v.Weight, Feedback: v.Feedback,
			Details: v.Details, DurationMS: int64(v.DurationMS),
		})
	}
	switch {
	case t.Verdict == record.Failed && slices.Contains(timeouts, num):
		t.Verdict, t.Score = record.TimedOut, new(float64)
	case t.Verdict == record.Failed && len(t.Graders) == 0:
		t.Score = new(float64)
	case t.Verdict.Counted():
		_, t.Score, _ = tally.VerdictOf(t.Graders, nil)
	}
	u := cmp.Or(r.Digest.Usage, r.Usage)
	if u != nil {
		t.Usage = &record.Usage{InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens)}
	}
	return t
}

// noTrial returns the trial of a task without runs.
func (t *task) noTrial() *record.Trial {
	return &record.Trial{
		TaskID: t.TestID, TrialNum: 1, Verdict: record.Skipped, Error: noneRecorded, Graders: []record.Grade{},
		Transcript: []record.Entry{},
	}
}

// transcript returns the transcript of the run or, if the file has none, its tool calls and
// skills.
func (r *run) transcript() []record.Entry {
	list := []record.Entry{}
	if len(r.Transcript) > 0 {
		list = transcriptOf(r.Transcript)
	}
	has := func(typ record.EntryType) bool {
		return slices.ContainsFunc(list, func(e record.Entry) bool { return e.Type == typ })
	}
	if !has(record.EntrySkill) {
		for _, s := range r.Skills {
			list = append(list, record.Entry{Type: record.EntrySkill, Text: s.Name})
		}
	}
	if !has(record.EntryToolCall) {
		list = append(list, r.toolCalls()...)
	}
	if !has(record.EntryError) {
		for _, e := range r.Digest.Errors {
			list = append(list, record.Entry{Type: record.EntryError, Text: e})
		}
	}
	r.times(list)
	return list
}

// toolCalls returns the tool calls from the events, which have more details, or from the digest.
func (r *run) toolCalls() []record.Entry {
	var list []record.Entry
	for _, e := range r.ToolEvents {
		result := e.Result
		if isNull(result) && e.Error != "" {
			result = quoted(e.Error)
		}
		list = append(list, called(e.ID, e.Name, e.Args, result, e.Success))
	}
	if len(list) > 0 {
		return list
	}
	for _, c := range r.Digest.ToolCalls {
		list = append(list, called(c.ID, c.Name, c.Arguments, c.Result, c.Success))
	}
	return list
}

// times adds the durations to tool calls; only events contain them.
func (r *run) times(list []record.Entry) {
	next := 0
	for i := range list {
		if list[i].Tool == nil || next >= len(r.ToolEvents) {
			continue
		}
		if e := &r.ToolEvents[next]; e.Name == list[i].Tool.Name && isDuration(e.DurationMS) {
			list[i].Tool.DurationMS = int64(e.DurationMS)
		}
		next++
	}
}

func called(id, name string, args, result json.RawMessage, success *bool) record.Entry {
	c := &record.ToolCall{ID: id, Name: name, Status: "completed"}
	if !isNull(args) {
		c.Arguments = args
	}
	if !isNull(result) {
		c.Result = result
	}
	if success != nil && !*success {
		c.Status = "failed"
	}
	return record.Entry{Type: record.EntryToolCall, Tool: c}
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func quoted(text string) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return b
}

// transcriptOf converts events to entries. It omits events that waza does not record, such as
// deltas and starts of turns.
func transcriptOf(events []event) []record.Entry {
	var list []record.Entry
	calls := map[string]*record.ToolCall{}
	for _, e := range events {
		text := cmp.Or(e.Content, e.Message)
		switch e.Type {
		case "user.message":
			list = append(list, record.Entry{Type: record.EntryMessage, Role: "user", Text: text})
		case "assistant.message":
			if text != "" {
				list = append(list, record.Entry{Type: record.EntryMessage, Role: "assistant", Text: text})
			}
		case "assistant.reasoning":
			list = append(list, record.Entry{Type: record.EntryThought, Text: text})
		case "skill.invoked":
			list = append(list, record.Entry{Type: record.EntrySkill, Text: text})
		case "session.error":
			list = append(list, record.Entry{Type: record.EntryError, Text: text})
		case "tool.execution_start":
			entry := called(e.CallID, e.ToolName, e.Arguments, nil, nil)
			entry.Tool.Status = "started"
			if e.CallID != "" {
				calls[e.CallID] = entry.Tool
			}
			list = append(list, entry)
		case "tool.execution_complete":
			complete(calls[e.CallID], &e)
		}
	}
	return list
}

// complete adds the result to a call; c is nil if the start of the call is not recorded.
func complete(c *record.ToolCall, e *event) {
	if c == nil {
		return
	}
	c.Status = "completed"
	if e.Success != nil && !*e.Success {
		c.Status = "failed"
	}
	var content struct {
		Content *string `json:"content"`
	}
	switch {
	case isNull(e.Result):
	case json.Unmarshal(e.Result, &content) == nil && content.Content != nil:
		if *content.Content != "" {
			c.Result = quoted(*content.Content)
		}
	default:
		c.Result = e.Result
	}
}

// A triggerEntry is a trial of a trigger test.
type triggerEntry struct {
	Prompt        string     `json:"prompt"`
	Confidence    string     `json:"confidence"`
	ShouldTrigger given.Bool `json:"should_trigger"`
	DidTrigger    given.Bool `json:"did_trigger"`
	ErrorMsg      string     `json:"error_msg"`
	FinalOutput   string     `json:"final_output"`
	Transcript    []event    `json:"transcript"`
	ToolCalls     []toolCall `json:"tool_calls"`
}

// check returns an error for an answer that cannot be counted.
func (e *triggerEntry) check() error {
	switch {
	case len(e.Prompt) > maxPrompt:
		return fmt.Errorf("prompt has %d bytes, the limit is %d", len(e.Prompt), maxPrompt)
	case !e.ShouldTrigger.Given:
		return errors.New("should_trigger is missing, expected true or false")
	case !e.DidTrigger.Given && e.ErrorMsg == "":
		return errors.New("did_trigger is missing, expected true or false")
	}
	return nil
}

func (e *triggerEntry) confidence() string {
	if e.Confidence == "" {
		return record.ConfidenceHigh
	}
	return e.Confidence
}

// nameShouldTrigger is the grader of trigger tests.
const nameShouldTrigger, typeShouldTrigger = "_should_trigger", "skill_invocation"

func (e *triggerEntry) trial(num int) *record.Trial {
	r := run{Transcript: e.Transcript}
	r.Digest.ToolCalls = e.ToolCalls
	t := &record.Trial{
		TrialNum: num, Prompt: e.Prompt, Output: e.FinalOutput, Error: e.ErrorMsg, Graders: []record.Grade{},
		Transcript: r.transcript(),
	}
	if e.ErrorMsg != "" {
		t.Verdict = record.Errored
		return t
	}
	g := record.Grade{Name: nameShouldTrigger, Type: typeShouldTrigger, Weight: 1, Passed: e.DidTrigger.Value == e.ShouldTrigger.Value}
	t.Verdict, t.Score = record.Failed, new(float64)
	if g.Passed {
		g.Score, t.Verdict, *t.Score = 1, record.Passed, 1
	}
	t.Graders = append(t.Graders, g)
	return t
}
