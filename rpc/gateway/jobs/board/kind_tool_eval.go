package board

import (
	"encoding/json"

	"waza/runner/record"
)

// toolEval are the messages of tool_eval: each trial is a case, and has a result.
type toolEval struct {
	rec     *record.Run
	targets []target
}

func newToolEval(rec *record.Run, _ []*record.Task) messages {
	return &toolEval{rec, targetsOf(rec)}
}

// initMessage is tool_eval_init.
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

// resultMessage is tool_eval_result.
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
	// The scores of tool and parameters are null: no case says yet which tool it expects.
	ToolScore  *float64       `json:"tool_selection_score"`
	ParamScore *float64       `json:"param_accuracy"`
	Score      *float64       `json:"overall_score"`
	LatencyMS  int64          `json:"latency_ms"`
	Verdict    record.Verdict `json:"verdict"`
	Success    bool           `json:"success"`
	Error      string         `json:"error,omitempty"`
}

func (m *toolEval) init(j *job, reconnect bool) []byte {
	msg := &initMessage{Type: "tool_eval_init", JobID: j.ID, Reconnect: reconnect, Data: initData{m.targets, j.total, j.done, j.suite}}
	if reconnect {
		msg.Percent = &j.Percent
	}
	return encode(msg)
}

// maxParams is how many bytes of arguments a result has; larger ones are null.
const maxParams = 16 << 10

func (m *toolEval) event(e *record.Event) [][]byte {
	if !isCase(m.rec, e) {
		return nil
	}
	return [][]byte{resultOf(m.rec, e)}
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
	for i := range e.Trial.Transcript {
		call := e.Trial.Transcript[i].Tool
		if call == nil {
			continue
		}
		name := cut(call.Name, maxFailure)
		m.Data.Tool = &name
		if len(call.Arguments) <= maxParams && json.Valid(call.Arguments) {
			m.Data.Params = call.Arguments
		}
		break
	}
	return encode(m)
}
