package board

import (
	"encoding/json"
	"math"
	"sync"

	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// toolEval creates the messages of tool_eval: each trial is a case, and has a result. At the
// end, it sends a summary for each model.
type toolEval struct {
	rec     *record.Run
	targets []target
	tasks   []*record.Task // finished tasks by index

	mu     sync.Mutex // guards the fields below
	latest caseRef
}

// caseRef identifies a case of a model.
type caseRef struct{ model, id string }

func newToolEval(rec *record.Run, before past) messages {
	m := &toolEval{rec: rec, targets: targetsOf(rec), tasks: make([]*record.Task, len(rec.Tasks))}
	copy(m.tasks, before.results)
	return m
}

// initMessage is the message tool_eval_init.
type initMessage struct {
	Type      string   `json:"type"`
	JobID     string   `json:"job_id"`
	Reconnect bool     `json:"reconnect"`
	Percent   *int     `json:"progress_pct,omitempty"`
	Data      initData `json:"data"`
}

type initData struct {
	Targets   []target `json:"targets"`
	Total     int      `json:"total_cases"`
	Completed int      `json:"completed_cases"`
	Suite     string   `json:"suite_name"`
}

// resultMessage is the message tool_eval_result.
type resultMessage struct {
	Type  string     `json:"type"`
	JobID string     `json:"job_id"`
	Data  resultData `json:"data"`
}

type resultData struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model_id"`
	Case     string          `json:"test_case_id"`
	Tool     *string         `json:"actual_tool"`
	Params   json.RawMessage `json:"actual_params"`
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
	msg := &initMessage{Type: "tool_eval_init", JobID: j.ID, Reconnect: reconnect, Data: initData{m.targets, j.total, j.done, j.suite}}
	if reconnect {
		msg.Percent = &j.Percent
	}
	return encode(msg)
}

// maxParams is the maximum size of a result's arguments in bytes; larger arguments become null.
const maxParams = 16 << 10

func (m *toolEval) event(e *record.Event) [][]byte {
	switch {
	case isCase(m.rec, e):
		ref := &m.rec.Tasks[e.TaskNum-1]
		m.mu.Lock()
		defer m.mu.Unlock()
		m.latest = caseRef{targetOf(m.rec, ref.Cell).Model, caseID(ref, e.TrialNum)}
		return [][]byte{resultOf(m.rec, e)}
	case e.Type == record.TaskComplete && e.TaskNum >= 1 && e.TaskNum <= len(m.tasks):
		m.tasks[e.TaskNum-1] = e.Task
	case e.Type == record.End && e.Status == record.StatusCompleted:
		return m.summaries()
	}
	return nil
}

// toolProgress is the message tool_eval_progress.
type toolProgress struct {
	Type  string           `json:"type"`
	JobID string           `json:"job_id"`
	Data  toolProgressData `json:"data"`
}

type toolProgressData struct {
	Current int    `json:"current"`
	Total   int    `json:"total"`
	Model   string `json:"model"`
	Case    string `json:"test_case"`
}

func (m *toolEval) progress(j *job) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return encode(&toolProgress{"tool_eval_progress", j.ID, toolProgressData{j.done, j.total, m.latest.model, m.latest.id}})
}

// summaryMessage is the message tool_eval_summary for one model.
type summaryMessage struct {
	Type  string      `json:"type"`
	JobID string      `json:"job_id"`
	Data  summaryData `json:"data"`
}

// summaryData holds percentages, as means over tasks; null without tasks.
type summaryData struct {
	Provider string   `json:"provider"`
	Model    string   `json:"model_id"`
	Name     string   `json:"model_name"`
	Tools    *float64 `json:"tool_accuracy_pct"`
	Params   *float64 `json:"param_accuracy_pct"`
	Overall  *float64 `json:"overall_pct"`
	Run      int      `json:"cases_run"`
	Passed   int      `json:"cases_passed"`
}

// completeMessage is the message tool_eval_complete.
type completeMessage struct {
	Type  string `json:"type"`
	JobID string `json:"job_id"`
	Eval  string `json:"eval_id"`
}

// summaries returns the summaries of all models, and the last message of the kind.
func (m *toolEval) summaries() [][]byte {
	var list [][]byte
	for _, t := range m.targets {
		list = append(list, encode(&summaryMessage{"tool_eval_summary", m.rec.RunID, m.summary(t)}))
	}
	return append(list, encode(&completeMessage{"tool_eval_complete", m.rec.RunID, m.rec.RunID}))
}

func (m *toolEval) summary(of target) summaryData {
	data := summaryData{Provider: of.Provider, Model: of.Model, Name: of.Model}
	var tasks []*record.Task
	var overall []float64
	for i, res := range m.tasks {
		ref := &m.rec.Tasks[i]
		if res == nil || ref.Role != record.RoleTask || targetOf(m.rec, ref.Cell) != of {
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
	t := targetOf(rec, ref.Cell)
	m := &resultMessage{Type: "tool_eval_result", JobID: rec.RunID, Data: resultData{
		Provider: t.Provider, Model: t.Model, Case: caseID(ref, e.TrialNum), Score: record.CountedScore(e.Verdict, e.Score),
		LatencyMS: e.DurationMS, Verdict: e.Verdict, Success: e.Verdict == record.Passed, Error: Failure(e.Error),
	}}
	if e.Trial == nil {
		return encode(m)
	}
	m.Data.LatencyMS = e.Trial.ExecutorMS
	best := 0
	if t := e.Trial.Tools; t != nil && (e.Verdict.Counted() || e.Verdict == record.NeedsReview) {
		m.Data.ToolScore, m.Data.ParamScore, m.Data.Score = &t.Selection, t.Params, &t.Overall
		if t.Call != nil {
			best = *t.Call
		}
	}
	if call := callOf(e.Trial, best); call != nil {
		name := cut(call.Name, maxFailure)
		m.Data.Tool = &name
		if len(call.Arguments) <= maxParams && json.Valid(call.Arguments) {
			m.Data.Params = call.Arguments
		}
	}
	return encode(m)
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
