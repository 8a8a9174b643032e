package board

import (
	"slices"

	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
)

// judging creates the messages of judge: each trial is a case, and has a verdict. Fields are in
// data, as the protocol document specifies, and beside it, where existing pages read them.
type judging struct {
	rec     *record.Run
	state   *replay.Follower
	targets []target
	started bool // the comparisons; used by event only
}

func newJudge(s *session) messages {
	return &judging{rec: s.rec, state: s.state, targets: targetsOf(s.rec)}
}

// judgeStart is the data of judge_start.
type judgeStart struct {
	Targets    []target `json:"targets"`
	JudgeModel string   `json:"judge_model"`
	Total      int      `json:"total_cases"`
	Completed  int      `json:"completed_cases"`
	Suite      string   `json:"suite_name"`
}

// judgeVerdict is the data of judge_verdict.
type judgeVerdict struct {
	Model   string `json:"model_id"`
	Case    string `json:"test_case_id"`
	Quality *int   `json:"quality_score"`
	Verdict string `json:"verdict"`
	Summary string `json:"summary"`
}

// judgeReport is the message judge_report.
type judgeReport struct {
	head
	Data   judgeReportData `json:"data"`
	Report judgeReportData `json:"report"`
}

type judgeReportData struct {
	Grade      string   `json:"overall_grade"`
	Score      *float64 `json:"overall_score"` // null when no task has a score for every model
	Strengths  []string `json:"strengths"`
	Weaknesses []string `json:"weaknesses"`
	// Error is the reason why strengths and weaknesses are missing.
	Error string `json:"error,omitempty"`
}

// compareStart is the data of compare_start.
type compareStart struct {
	Models     []string `json:"models"`
	JudgeModel string   `json:"judge_model"`
	Total      int      `json:"total_cases"`
	Completed  int      `json:"completed_cases"`
}

// compareCase is the data of compare_case.
type compareCase struct {
	Num        int            `json:"case_num"`
	Case       string         `json:"test_case_id"`
	ModelA     string         `json:"model_a"`
	ModelB     string         `json:"model_b"`
	Winner     *record.Winner `json:"winner"` // null when there is an error
	Confidence float64        `json:"confidence"`
	Reasoning  string         `json:"reasoning"`
	Error      string         `json:"error,omitempty"`
}

// compareComplete is the data of compare_complete.
type compareComplete struct {
	Missing     int           `json:"missing_cases"`
	Comparisons []comparePair `json:"comparisons"`
}

// comparePair counts the results from the view of model A.
type comparePair struct {
	ModelA  string   `json:"model_a"`
	ModelB  string   `json:"model_b"`
	Wins    int      `json:"wins"`
	Losses  int      `json:"losses"`
	Ties    int      `json:"ties"`
	WinRate *float64 `json:"win_rate"`
}

// judgeEnd is the message judge_complete or judge_failed.
type judgeEnd struct {
	head
	Error  *string `json:"error,omitempty"`
	Detail *string `json:"detail,omitempty"` // Error for existing pages
}

func (m *judging) init(j *job, reconnect bool) []byte {
	h := j.initial("judge_start", reconnect)
	h.EvalID = j.ID
	return h.withBoth(judgeStart{m.targets, m.rec.Config.JudgeModel, j.total, j.done, j.suite})
}

// more returns the messages after init for clients that connect during the session.
func (m *judging) more(*job) [][]byte {
	if m.state.Comparing.Total == 0 {
		return nil
	}
	return [][]byte{m.start(m.state.Comparing.Done, true)}
}

func (m *judging) start(done int, reconnect bool) []byte {
	var models []string
	for _, t := range m.targets {
		models = append(models, t.Model)
	}
	return head{Type: "compare_start", JobID: m.rec.RunID, EvalID: m.rec.RunID, Reconnect: &reconnect}.withBoth(
		compareStart{models, m.rec.Config.JudgeModel, m.state.Comparing.Total, done})
}

func (m *judging) event(e *record.Event) [][]byte {
	switch {
	case e.Type == record.End:
		if statusOf(e.Status) == Done && e.Summary != nil && e.Summary.Judged != nil {
			return m.results(e.Summary.Judged)
		}
	case e.Comparing != nil:
		return m.compare(e)
	case isCase(m.rec, e):
		return [][]byte{m.verdict(e)}
	}
	return nil
}

// compare handles compare_start, and compare_complete of one comparison. The first of these
// events starts the comparisons, even if earlier ones preceded the board.
func (m *judging) compare(e *record.Event) (list [][]byte) {
	c, done := e.Comparison, m.state.Comparing.Done
	if !m.started && c != nil {
		list = append(list, m.start(done-1, true))
	}
	m.started = true
	if c == nil {
		return append(list, m.start(done, false))
	}
	data := compareCase{
		Num: c.Num, ModelA: c.ModelA, ModelB: c.ModelB, Confidence: c.Confidence, Reasoning: Failure(c.Reasoning),
		Error: Failure(c.Error),
	}
	if c.Winner != "" {
		data.Winner = &c.Winner
	}
	if i := slices.IndexFunc(m.rec.Tasks, func(t record.TaskRef) bool { return t.ID == c.TaskA }); i >= 0 {
		data.Case = caseID(&m.rec.Tasks[i], c.TrialNum)
	}
	return append(list, head{Type: "compare_case", JobID: m.rec.RunID}.withBoth(data))
}

// results returns the messages about the summary of the run.
func (m *judging) results(r *record.JudgeResult) (list [][]byte) {
	id := m.rec.RunID
	if len(r.Comparisons) > 0 {
		data := compareComplete{Missing: r.Missing + r.LeftOut}
		for _, p := range r.Comparisons {
			data.Comparisons = append(data.Comparisons, comparePair{p.ModelA, p.ModelB, p.Wins, p.Losses, p.Ties, p.WinRate})
		}
		list = append(list, head{Type: "compare_complete", JobID: id, EvalID: id}.withBoth(data))
	}
	if report := r.Report; report != nil {
		data := judgeReportData{report.OverallGrade, report.OverallScore, []string{}, []string{}, Failure(report.Missing)}
		for _, s := range report.Strengths {
			data.Strengths = append(data.Strengths, Failure(s))
		}
		for _, s := range report.Weaknesses {
			data.Weaknesses = append(data.Weaknesses, Failure(s))
		}
		list = append(list, encode(&judgeReport{head{Type: "judge_report", JobID: id, EvalID: id}, data, data}))
	}
	return list
}

func (m *judging) verdict(e *record.Event) []byte {
	res := e.Trial
	if res == nil {
		res = &record.Trial{Verdict: e.Verdict, Error: e.Error}
	}
	ref, v := &m.rec.Tasks[e.TaskNum-1], tally.CaseVerdictOf(res)
	data := judgeVerdict{targetOf(m.rec, ref.Cell).Model, caseID(ref, e.TrialNum), v.QualityScore, v.Verdict, Failure(v.Summary)}
	return head{Type: "judge_verdict", JobID: m.rec.RunID}.withBoth(data)
}

// last returns the last message before that of the job. A cancelled job has none.
func (m *judging) last(to Status, failure string) []byte {
	msg := &judgeEnd{head: head{Type: "judge_complete", JobID: m.rec.RunID, EvalID: m.rec.RunID}}
	switch to {
	case Cancelled:
		return nil
	case Failed, Interrupted:
		msg.Type, msg.Error, msg.Detail = "judge_failed", &failure, &failure
	case Pending, Running, Done:
	}
	return encode(msg)
}
