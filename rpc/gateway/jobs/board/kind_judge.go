package board

import (
	"waza/runner/record"
	"waza/runner/tally"
)

// judging are the messages of judge: each trial is a case, and has a verdict. Fields are in
// data, as the document has them, and beside it, where pages in the field read them.
type judging struct {
	rec     *record.Run
	targets []target
}

func newJudge(rec *record.Run, _ []*record.Task) messages {
	return &judging{rec: rec, targets: targetsOf(rec)}
}

// judgeStart is judge_start.
type judgeStart struct {
	Type      string         `json:"type"`
	JobID     string         `json:"job_id"`
	EvalID    string         `json:"eval_id"`
	Reconnect bool           `json:"reconnect"`
	Percent   *int           `json:"progress_pct,omitempty"`
	Data      judgeStartData `json:"data"`
	judgeStartData
}

type judgeStartData struct {
	Targets    []target `json:"targets"`
	JudgeModel string   `json:"judge_model"`
	Total      int      `json:"total_cases"`
	Completed  int      `json:"completed_cases"`
	Suite      string   `json:"suite_name"`
}

// judgeVerdict is judge_verdict.
type judgeVerdict struct {
	Type  string           `json:"type"`
	JobID string           `json:"job_id"`
	Data  judgeVerdictData `json:"data"`
	judgeVerdictData
}

type judgeVerdictData struct {
	Model   string `json:"model_id"`
	Case    string `json:"test_case_id"`
	Quality *int   `json:"quality_score"`
	Verdict string `json:"verdict"`
	Summary string `json:"summary"`
}

// judgeEnd is judge_complete or judge_failed.
type judgeEnd struct {
	Type   string  `json:"type"`
	JobID  string  `json:"job_id"`
	EvalID string  `json:"eval_id"`
	Error  *string `json:"error,omitempty"`
}

func (m *judging) init(j *job, reconnect bool) []byte {
	data := judgeStartData{m.targets, m.rec.Config.JudgeModel, j.total, j.done, j.suite}
	msg := &judgeStart{Type: "judge_start", JobID: j.ID, EvalID: j.ID, Reconnect: reconnect, Data: data, judgeStartData: data}
	if reconnect {
		msg.Percent = &j.Percent
	}
	return encode(msg)
}

func (m *judging) event(e *record.Event) [][]byte {
	switch {
	case e.Type == record.End:
		return m.end(e)
	case isCase(m.rec, e):
		return [][]byte{m.verdict(e)}
	}
	return nil
}

func (m *judging) verdict(e *record.Event) []byte {
	res := e.Trial
	if res == nil {
		res = &record.Trial{Verdict: e.Verdict, Error: e.Error}
	}
	ref, v := &m.rec.Tasks[e.TaskNum-1], tally.CaseVerdictOf(res)
	data := judgeVerdictData{targetOf(m.rec, ref.Cell).Model, caseID(ref, e.TrialNum), v.QualityScore, v.Verdict, Failure(v.Summary)}
	return encode(&judgeVerdict{Type: "judge_verdict", JobID: m.rec.RunID, Data: data, judgeVerdictData: data})
}

// end is the last message but that of the job. What is cancelled has none.
func (m *judging) end(e *record.Event) [][]byte {
	msg := &judgeEnd{Type: "judge_complete", JobID: m.rec.RunID, EvalID: m.rec.RunID}
	switch statusOf(e.Status) {
	case Done:
	case Cancelled:
		return nil
	default:
		text := Failure(e.Error)
		msg.Type, msg.Error = "judge_failed", &text
	}
	return [][]byte{encode(msg)}
}
