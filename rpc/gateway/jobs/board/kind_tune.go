package board

import (
	"slices"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/tally"
)

// tune creates the messages of param_tune and prompt_tune: each cell of the matrix has a result
// when all its tasks have ended. combo distinguishes the two kinds.
type tune struct {
	rec     *record.Run
	cells   []*record.Cell
	results []*record.Task // by task; nil for unfinished tasks
	sent    []bool         // by cell
	// combo returns the messages about a cell that has ended.
	combo func(t *tune, cell int) [][]byte
}

// cellOf returns the index of the cell of an event; -1 when the event has no cell.
func (t *tune) cellOf(e *record.Event) int {
	if e.Role != record.RoleTask || e.TaskNum < 1 || e.TaskNum > len(t.rec.Tasks) {
		return -1
	}
	return slices.IndexFunc(t.cells, func(c *record.Cell) bool { return t.rec.Tasks[e.TaskNum-1].Cell.In(c) })
}

// reason returns the most frequent reason why trials of a cell did not pass; empty without one.
func (t *tune) reason(cell int) (why string) {
	t.tasksOf(cell, func(_ *record.TaskRef, res *record.Task) bool {
		if why == "" && res != nil && len(res.Reasons) > 0 {
			why = res.Reasons[0].Message
		}
		return why == ""
	})
	return why
}

func newTune(rec *record.Run, before past, combo func(*tune, int) [][]byte) *tune {
	t := &tune{rec: rec, cells: rec.Cells(), results: make([]*record.Task, len(rec.Tasks)), combo: combo}
	copy(t.results, before.results)
	t.sent = make([]bool, len(t.cells))
	return t
}

func newParamTune(rec *record.Run, before past) messages {
	return newTune(rec, before, (*tune).params)
}

// tuneStart is the message tune_start.
type tuneStart struct {
	Type      string         `json:"type"`
	JobID     string         `json:"job_id"`
	TuneID    string         `json:"tune_id"`
	JobType   eval.SuiteKind `json:"job_type"`
	Reconnect bool           `json:"reconnect"`
	Percent   *int           `json:"progress_pct,omitempty"`
	Total     int            `json:"total_combos"`
	Models    []string       `json:"models"`
	Suite     string         `json:"suite_name"`
}

func (t *tune) init(j *job, reconnect bool) []byte {
	m := &tuneStart{
		Type: "tune_start", JobID: j.ID, TuneID: j.ID, JobType: j.Type, Reconnect: reconnect, Total: len(t.cells), Suite: j.suite,
	}
	for _, target := range targetsOf(t.rec) {
		m.Models = append(m.Models, target.Model)
	}
	if reconnect {
		m.Percent = &j.Percent
	}
	return encode(m)
}

func (t *tune) event(e *record.Event) [][]byte {
	switch {
	case e.Type == record.TaskComplete && e.Role == record.RoleTask && e.TaskNum >= 1 && e.TaskNum <= len(t.rec.Tasks):
		t.results[e.TaskNum-1] = e.Task
		cell := t.cellOf(e)
		if cell < 0 || t.sent[cell] || !t.isOver(cell) {
			return nil
		}
		t.sent[cell] = true
		return t.combo(t, cell)
	case e.Type == record.End:
		return [][]byte{encode(t.complete(e))}
	}
	return nil
}

// tasksOf calls visit with each task of a cell until visit returns false.
func (t *tune) tasksOf(cell int, visit func(ref *record.TaskRef, res *record.Task) bool) {
	for i := range t.rec.Tasks {
		ref := &t.rec.Tasks[i]
		if ref.Role == record.RoleTask && ref.Cell.In(t.cells[cell]) && !visit(ref, t.results[i]) {
			return
		}
	}
}

// isOver reports whether all tasks of a cell have ended.
func (t *tune) isOver(cell int) bool {
	over := true
	t.tasksOf(cell, func(_ *record.TaskRef, res *record.Task) bool {
		over = res != nil
		return over
	})
	return over
}

// score returns the mean score of a cell, as in the summary of the run; nil when no trial
// counts.
func (t *tune) score(cell int) *float64 {
	if s := tally.ScoreOver(t.resultsOf(cell)); s != nil {
		return &s.Mean
	}
	return nil
}

func (t *tune) resultsOf(cell int) (list []*record.Task) {
	t.tasksOf(cell, func(_ *record.TaskRef, res *record.Task) bool {
		list = append(list, res)
		return true
	})
	return list
}

// caseResult is a task of a cell. Scores are means over its trials, or null without scores. The
// overall score is that of its tools if the task expects tool calls.
type caseResult struct {
	Case       string         `json:"test_case_id"`
	ToolScore  *float64       `json:"tool_selection_score"`
	ParamScore *float64       `json:"param_accuracy"`
	Score      *float64       `json:"overall_score"`
	Verdict    record.Verdict `json:"verdict"`
}

func (t *tune) cases(cell int) (list []caseResult) {
	t.tasksOf(cell, func(ref *record.TaskRef, res *record.Task) bool {
		c := caseResult{Case: ref.Task, Verdict: res.Verdict}
		if res.Score != nil {
			c.Score = &res.Score.Mean
		}
		if s := res.Tools; s != nil {
			c.ToolScore, c.ParamScore, c.Score = &s.Selection, s.Params, &s.Overall
		}
		list = append(list, c)
		return true
	})
	return list
}

// comboResult is the message tune_combo_result, and combo_result for existing pages.
type comboResult struct {
	Type   string    `json:"type"`
	JobID  string    `json:"job_id"`
	TuneID string    `json:"tune_id"`
	Data   comboData `json:"data"`
}

type comboData struct {
	Combo  int            `json:"combo_index"` // counted from 0
	Model  string         `json:"model_id"`
	Params map[string]any `json:"params"`
	Score  *float64       `json:"score"`
	Cases  []caseResult   `json:"case_results"`
}

func (t *tune) params(cell int) [][]byte {
	c := t.cells[cell]
	m := comboResult{"tune_combo_result", t.rec.RunID, t.rec.RunID, comboData{cell, targetOf(t.rec, c).Model, c.Params, t.score(cell), t.cases(cell)}}
	field := m
	field.Type = "combo_result"
	return [][]byte{encode(m), encode(field)}
}

// tuneComplete is the message tune_complete. It has no best cell when no cell has a score.
type tuneComplete struct {
	Type   string         `json:"type"`
	JobID  string         `json:"job_id"`
	TuneID string         `json:"tune_id"`
	Status record.Status  `json:"status"`
	Combo  *int           `json:"best_index,omitempty"`
	Model  string         `json:"best_model_id,omitempty"`
	Params map[string]any `json:"best_params,omitempty"`
	Score  *float64       `json:"best_score,omitempty"`
	// Rivals are the indexes of the cells that may be as good as the best.
	Rivals []int `json:"rivals,omitempty"`
}

func (t *tune) complete(e *record.Event) *tuneComplete {
	m := &tuneComplete{Type: "tune_complete", JobID: t.rec.RunID, TuneID: t.rec.RunID, Status: e.Status}
	if e.Summary == nil || e.Summary.Tune == nil {
		return m
	}
	index := func(name string) int {
		return slices.IndexFunc(t.cells, func(c *record.Cell) bool { return c.Name == name })
	}
	if best := index(e.Summary.Tune.Best); best >= 0 {
		c := t.cells[best]
		m.Combo, m.Model, m.Params, m.Score = &best, targetOf(t.rec, c).Model, c.Params, t.score(best)
	}
	for _, name := range e.Summary.Tune.Rivals {
		if i := index(name); i >= 0 {
			m.Rivals = append(m.Rivals, i)
		}
	}
	return m
}
