package board

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"sync"

	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/stats"
	"waza/runner/tally"
)

// toolEval creates the messages of tool_eval: each trial is a case, and has a result. At the
// end, it sends a summary for each model.
type toolEval struct {
	rec     *record.Run
	targets []target
	state   *replay.Follower

	mu     sync.Mutex // guards the fields below
	latest caseRef
}

// caseRef identifies a case of a model.
type caseRef struct{ model, id string }

func newToolEval(s *session) messages {
	return &toolEval{rec: s.rec, targets: targetsOf(s.rec), state: s.state}
}

// toolInit is the data of tool_eval_init.
type toolInit struct {
	Targets []target `json:"targets"`
	// Total is the number of cases of one target; the largest number if they differ.
	Total int `json:"total_cases"`
	// Completed counts the cases of all targets.
	Completed int    `json:"completed_cases"`
	Suite     string `json:"suite_name"`
}

// toolResult is the data of tool_eval_result.
type toolResult struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model_id"`
	Name     string          `json:"model_name"`
	Case     string          `json:"test_case_id"`
	Prompt   string          `json:"prompt,omitempty"` // cut like an error
	Tool     *string         `json:"actual_tool"`
	Params   json.RawMessage `json:"actual_params"`
	// Existing pages show the expected call. It is null for a case that expects no tool calls.
	Expected       *string         `json:"expected_tool"`
	ExpectedParams json.RawMessage `json:"expected_params"`
	// The scores of tool and parameters are null for a case that expects no tool calls.
	ToolScore  *float64 `json:"tool_selection_score"`
	ParamScore *float64 `json:"param_accuracy"`
	// Score is the score of the tools or, without one, of the trial.
	Score     *float64       `json:"overall_score"`
	LatencyMS int64          `json:"latency_ms"`
	Verdict   record.Verdict `json:"verdict"`
	Success   bool           `json:"success"`
	Error     string         `json:"error,omitempty"`
}

func (m *toolEval) init(j *job, reconnect bool) []byte {
	return j.initial("tool_eval_init", reconnect).with(toolInit{m.targets, m.perTarget(), j.done, j.suite})
}

// perTarget returns the number of cases of one target; the largest number if they differ.
func (m *toolEval) perTarget() (most int) {
	cases := map[target]int{}
	for i := range m.rec.Tasks {
		if ref := &m.rec.Tasks[i]; ref.Role == record.RoleTask {
			t := targetOfTask(m.rec, ref)
			cases[t] += ref.Trials
			most = max(most, cases[t])
		}
	}
	return most
}

// maxParams is the maximum size of a result's arguments in bytes; larger arguments become null.
const maxParams = 16 << 10

func (m *toolEval) event(e *record.Event) [][]byte {
	switch {
	case isCase(m.rec, e):
		ref := &m.rec.Tasks[e.TaskNum-1]
		m.mu.Lock()
		defer m.mu.Unlock()
		m.latest = caseRef{targetOfTask(m.rec, ref).Model, caseID(ref, e.TrialNum)}
		return [][]byte{resultOf(m.rec, e)}
	case e.Type == record.End && e.Status == record.StatusCompleted:
		return m.summaries()
	}
	return nil
}

// toolProgress is the data of tool_eval_progress.
type toolProgress struct {
	Current int    `json:"current"`
	Total   int    `json:"total"`
	Model   string `json:"model"`
	Case    string `json:"test_case"`
}

func (m *toolEval) progress(j *job) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return head{Type: "tool_eval_progress", JobID: j.ID}.with(toolProgress{j.done, j.total, m.latest.model, m.latest.id})
}

// toolSummary is the data of tool_eval_summary for one model: percentages, as means over tasks; null
// without tasks.
type toolSummary struct {
	Provider string   `json:"provider"`
	Model    string   `json:"model_id"`
	Name     string   `json:"model_name"`
	Tools    *float64 `json:"tool_accuracy_pct"`
	Params   *float64 `json:"param_accuracy_pct"`
	Overall  *float64 `json:"overall_pct"`
	Run      int      `json:"cases_run"`
	Passed   int      `json:"cases_passed"`
}

// summaries returns the summaries of all models, and the last message of the kind.
func (m *toolEval) summaries() [][]byte {
	var list [][]byte
	for _, t := range m.targets {
		list = append(list, head{Type: "tool_eval_summary", JobID: m.rec.RunID}.with(m.summary(t)))
	}
	return append(list, encode(head{Type: "tool_eval_complete", JobID: m.rec.RunID, EvalID: m.rec.RunID}))
}

func (m *toolEval) summary(of target) toolSummary {
	data := toolSummary{Provider: of.Provider, Model: of.Model, Name: of.Model}
	var tasks []*record.Task
	var overall []float64
	for i := range m.rec.Tasks {
		ref, res := &m.rec.Tasks[i], m.state.Result(i)
		if res == nil || ref.Role != record.RoleTask || targetOfTask(m.rec, ref) != of {
			continue
		}
		tasks = append(tasks, res)
		data.Run += res.Trials.Counted()
		data.Passed += res.Trials.Passed
		switch {
		case res.Tools != nil:
			overall = append(overall, res.Tools.Overall)
		case res.Score != nil:
			overall = append(overall, res.Score.Mean)
		}
	}
	if tools := tally.ToolsOver(tasks); tools != nil {
		data.Tools, data.Params = percent(&tools.Selection), percent(tools.Params)
	}
	if len(overall) > 0 {
		mean := stats.Describe(overall).Mean
		data.Overall = percent(&mean)
	}
	return data
}

// percent converts a share to a percentage with one decimal.
func percent(share *float64) *float64 {
	if share == nil {
		return nil
	}
	p := math.Round(*share*1000) / 10
	return &p
}

func resultOf(rec *record.Run, e *record.Event) []byte {
	ref := &rec.Tasks[e.TaskNum-1]
	t := targetOfTask(rec, ref)
	data := toolResult{
		Provider: t.Provider, Model: t.Model, Name: t.Model, Case: caseID(ref, e.TrialNum), Score: record.CountedScore(e.Verdict, e.Score),
		LatencyMS: e.DurationMS, Verdict: e.Verdict, Success: e.Verdict == record.Passed, Error: Failure(e.Error),
	}
	var call *record.ToolCall
	if e.Trial != nil {
		data.LatencyMS, data.Prompt = e.Trial.ExecutorMS, Failure(e.Trial.Prompt)
		if t := toolsOf(e.Trial); t != nil {
			data.ToolScore, data.ParamScore, data.Score = &t.Selection, t.Params, &t.Overall
		}
		call = bestCall(e.Trial)
	}
	if call != nil {
		data.Tool, data.Params = toolName(call.Name), paramsOf(call.Arguments)
	}
	if expected := expectedCall(ref, call); expected != nil {
		data.Expected = expectedTool(expected)
		if len(expected.Arguments) > 0 {
			arguments, _ := json.Marshal(expected.Arguments) // paramsOf checks the result
			data.ExpectedParams = paramsOf(arguments)
		}
	}
	return head{Type: "tool_eval_result", JobID: rec.RunID}.with(data)
}

// toolsOf returns the tool scores of a trial; nil if they do not count.
func toolsOf(t *record.Trial) *record.TrialTools {
	if t.Verdict.Counted() || t.Verdict == record.NeedsReview {
		return t.Tools
	}
	return nil
}

// bestCall returns the call that best matches an expected one, or else the first; nil without
// calls.
func bestCall(t *record.Trial) *record.ToolCall {
	best := 0
	if tools := toolsOf(t); tools != nil && tools.Call != nil {
		best = *tools.Call
	}
	return callOf(t, best)
}

// expectedCall returns the expected call of a task that best matches a call, or else the first;
// nil when the task expects none.
func expectedCall(ref *record.TaskRef, call *record.ToolCall) (best *record.ExpectedCall) {
	most := -1
	for i := range ref.ExpectedCalls {
		e, right := &ref.ExpectedCalls[i], 0
		if call != nil && e.Tool == call.Name {
			right = 1 + equalArguments(e.Arguments, call.Arguments)
		}
		if right > most {
			best, most = e, right
		}
	}
	return best
}

// equalArguments counts the arguments of a call that have their expected values.
func equalArguments(expected map[string]any, arguments json.RawMessage) (n int) {
	var actual, wanted map[string]any
	data, err := json.Marshal(expected) // decoded again, so that numbers have one type
	if err != nil || json.Unmarshal(data, &wanted) != nil || json.Unmarshal(arguments, &actual) != nil {
		return 0
	}
	for name, want := range wanted {
		if value, ok := actual[name]; ok && reflect.DeepEqual(value, want) {
			n++
		}
	}
	return n
}

// expectedTool returns the tool of an expected call for a message: * if any tool will do.
func expectedTool(c *record.ExpectedCall) *string { return toolName(cmp.Or(c.Tool, "*")) }

// toolName returns the name of a tool for a message.
func toolName(name string) *string {
	name = cut(name, maxFailure)
	return &name
}

// paramsOf returns arguments for a message; nil if they are too large or invalid.
func paramsOf(arguments json.RawMessage) json.RawMessage {
	if len(arguments) > maxParams || !json.Valid(arguments) {
		return nil
	}
	return arguments
}

// callOf returns the tool call with that number, counted from 0; nil when it does not exist.
func callOf(t *record.Trial, number int) *record.ToolCall {
	for i := range t.Transcript {
		e := &t.Transcript[i]
		if e.Type != record.EntryToolCall || e.Tool == nil {
			continue
		}
		if number == 0 {
			return e.Tool
		}
		number--
	}
	return nil
}
