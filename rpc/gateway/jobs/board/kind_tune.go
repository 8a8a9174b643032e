package board

import (
	"iter"
	"maps"
	"math"
	"slices"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// tune creates the messages of param_tune and prompt_tune: each cell of the matrix has a result
// when all its tasks have ended. combo distinguishes the two kinds.
type tune struct {
	*session
	cells []*record.Cell
	sent  []bool // by cell
	// combo returns the messages about a cell that has ended.
	combo func(t *tune, cell int) [][]byte
	// prompt returns the system prompt of a cell; empty when the matrix has none.
	prompt func(c *record.Cell) string
}

// cellOf returns the index of the cell of an event; -1 when the event has no cell.
func (t *tune) cellOf(e *record.Event) int {
	if e.Role != record.RoleTask || e.TaskNum < 1 || e.TaskNum > len(t.rec.Tasks) {
		return -1
	}
	return slices.IndexFunc(t.cells, func(c *record.Cell) bool { return t.rec.Tasks[e.TaskNum-1].Cell.In(c) })
}

// reason returns the most frequent reason why trials of a cell did not pass; empty without one.
func (t *tune) reason(cell int) string {
	for _, res := range t.tasksOf(cell) {
		if res != nil && len(res.Reasons) > 0 && res.Reasons[0].Message != "" {
			return res.Reasons[0].Message
		}
	}
	return ""
}

func newTune(s *session, combo func(*tune, int) [][]byte) *tune {
	t := &tune{session: s, cells: s.rec.Cells(), combo: combo, prompt: promptOf}
	t.sent = make([]bool, len(t.cells))
	return t
}

func newParamTune(s *session) messages { return newTune(s, (*tune).params) }

// tuneHead identifies a message about a tuning.
type tuneHead struct {
	Type   string `json:"type"`
	JobID  string `json:"job_id"`
	TuneID string `json:"tune_id"`
}

func (t *tune) head(kind string) tuneHead { return tuneHead{kind, t.rec.RunID, t.rec.RunID} }

// tuneStart is the message tune_start.
type tuneStart struct {
	tuneHead
	JobType   eval.SuiteKind `json:"job_type"`
	Reconnect bool           `json:"reconnect"`
	Percent   *int           `json:"progress_pct,omitempty"`
	Total     int            `json:"total_combos"`
	Models    []string       `json:"models"`
	Suite     string         `json:"suite_name"`
	// Search is the way a param_tune selects its cells: grid, because it tries all of them.
	Search string `json:"optimization_mode,omitempty"`
	// Mode is quick for a prompt_tune of one generation, and evolutionary for several.
	Mode    string `json:"mode,omitempty"`
	Prompts int    `json:"total_prompts,omitempty"`
}

func (t *tune) init(j *job, reconnect bool) []byte {
	m := t.start(j, reconnect)
	m.Search = "grid"
	return encode(m)
}

// start returns the fields of tune_start that both kinds have.
func (t *tune) start(j *job, reconnect bool) *tuneStart {
	m := &tuneStart{
		tuneHead: t.head("tune_start"), JobType: j.Type, Reconnect: reconnect, Total: len(t.cells), Suite: j.suite,
	}
	for _, target := range targetsOf(t.rec) {
		m.Models = append(m.Models, target.Model)
	}
	if reconnect {
		m.Percent = &j.Percent
	}
	return m
}

func (t *tune) event(e *record.Event) [][]byte {
	switch {
	case isCase(t.rec, e):
		if e.Trial != nil {
			t.add(e.TaskNum-1, e.Trial)
		}
	case e.Type == record.TaskComplete && e.Role == record.RoleTask && e.TaskNum >= 1 && e.TaskNum <= len(t.rec.Tasks):
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

// tasksOf returns the tasks of a cell: their indexes and results, which are nil before their ends.
func (t *tune) tasksOf(cell int) iter.Seq2[int, *record.Task] {
	return func(yield func(task int, res *record.Task) bool) {
		for i := range t.rec.Tasks {
			ref := &t.rec.Tasks[i]
			if ref.Role == record.RoleTask && ref.Cell.In(t.cells[cell]) && !yield(i, t.state.Result(i)) {
				return
			}
		}
	}
}

// isOver reports whether all tasks of a cell have ended.
func (t *tune) isOver(cell int) bool { return !slices.Contains(t.resultsOf(cell), nil) }

// score returns the mean score of a cell over its own tasks, as in the summary of the run; nil
// when no trial counts. A cell whose hard task has no score can therefore have a higher score than
// the best cell: [tune.complete] ranks the tasks that have a score in every cell. The message about
// a cell cannot do that, because it is sent before the other cells have ended.
func (t *tune) score(cell int) *float64 {
	if s := tally.ScoreOver(t.resultsOf(cell)); s != nil {
		return &s.Mean
	}
	return nil
}

func (t *tune) resultsOf(cell int) (list []*record.Task) {
	for _, res := range t.tasksOf(cell) {
		list = append(list, res)
	}
	return list
}

// names returns the names of the suite's tasks.
func (t *tune) names() (list []string) {
	for task := range t.tasksOf(0) {
		list = append(list, t.rec.Tasks[task].Task)
	}
	return list
}

// side returns a cell to compare with others.
func (t *tune) side(cell int) tally.Side {
	s := tally.Side{Name: t.cells[cell].Name, Tasks: map[string]*record.Task{}}
	for task, res := range t.tasksOf(cell) {
		s.Tasks[t.rec.Tasks[task].Task] = res
	}
	return s
}

// caseResult is a task of a cell. Scores are means over its trials, or null without scores. The
// overall score is that of its tools if the task expects tool calls.
type caseResult struct {
	Case string `json:"test_case_id"`
	// Expected is null for a task that expects no tool calls. Tool is that of the first answered
	// trial; null if it made no call.
	Expected   *string        `json:"expected_tool"`
	Tool       *string        `json:"actual_tool"`
	ToolScore  *float64       `json:"tool_selection_score"`
	ParamScore *float64       `json:"param_accuracy"`
	Score      *float64       `json:"overall_score"`
	Verdict    record.Verdict `json:"verdict"`
}

func (t *tune) cases(cell int) (list []caseResult) {
	for task, res := range t.tasksOf(cell) {
		ref := &t.rec.Tasks[task]
		c := caseResult{Case: ref.Task, Verdict: res.Verdict}
		call := t.firstCall(task)
		if call != nil {
			c.Tool = toolName(call.Name)
		}
		if expected := expectedCall(ref, call); expected != nil {
			c.Expected = expectedTool(expected)
		}
		if res.Score != nil {
			c.Score = &res.Score.Mean
		}
		if s := res.Tools; s != nil {
			c.ToolScore, c.ParamScore, c.Score = &s.Selection, s.Params, &s.Overall
		}
		list = append(list, c)
	}
	return list
}

// firstCall returns the call of the first answered trial of a task; nil if it made none.
func (t *tune) firstCall(task int) *record.ToolCall {
	ref := &t.rec.Tasks[task]
	for num := ref.First; num < ref.First+ref.Trials; num++ {
		if a, ok := t.answers[caseKey{task, num}]; ok {
			return a.call
		}
	}
	return nil
}

// comboResult is the message tune_combo_result, and combo_result for existing pages.
type comboResult struct {
	tuneHead
	Data comboData `json:"data"`
}

type comboData struct {
	Combo  int            `json:"combo_index"` // counted from 0
	Model  string         `json:"model_id"`
	Params map[string]any `json:"params"`
	Score  *float64       `json:"score"`
	Cases  []caseResult   `json:"case_results"`
	// Existing pages read the fields below. Config and Overall repeat Params and Score, which is
	// the mean over the tasks of this cell that have a score. See [tune.score].
	Config  map[string]any `json:"config"`
	Name    string         `json:"model_name"`
	Overall *float64       `json:"overall_score"`
	accuracies
	// LatencyMS is the mean latency_ms of the answered trials; null without any.
	LatencyMS *float64 `json:"latency_avg_ms"`
	// Passed and Total count the tasks in Cases.
	Passed int `json:"cases_passed"`
	Total  int `json:"cases_total"`
}

// accuracies are the mean tool scores of a cell in percent; null without tool calls to expect.
type accuracies struct {
	Tools  *float64 `json:"tool_accuracy"`
	Params *float64 `json:"param_accuracy"`
}

func (t *tune) accuracies(cell int) (a accuracies) {
	if s := tally.ToolsOver(t.resultsOf(cell)); s != nil {
		a = accuracies{percent(&s.Selection), percent(s.Params)}
	}
	return a
}

func (t *tune) params(cell int) [][]byte {
	c := t.cells[cell]
	model, score := targetOf(t.rec, c).Model, t.score(cell)
	m := comboResult{t.head("tune_combo_result"), comboData{
		Combo: cell, Model: model, Params: c.Params, Score: score, Cases: t.cases(cell),
		Config: c.Params, Name: model, Overall: score, accuracies: t.accuracies(cell), LatencyMS: t.latency(cell),
	}}
	m.Data.Total = len(m.Data.Cases)
	for i := range m.Data.Cases {
		if m.Data.Cases[i].Verdict == record.Passed {
			m.Data.Passed++
		}
	}
	field := m
	field.Type = "combo_result"
	return [][]byte{encode(m), encode(field)}
}

// latency returns the mean time of the executor over the answered trials of a cell, in
// milliseconds; nil without any.
func (t *tune) latency(cell int) *float64 {
	var all []float64
	for key, a := range t.answers {
		if ref := &t.rec.Tasks[key.task]; ref.Role == record.RoleTask && ref.Cell.In(t.cells[cell]) {
			all = append(all, float64(a.took))
		}
	}
	if len(all) == 0 {
		return nil
	}
	mean := math.Round(stats.Describe(all).Mean)
	return &mean
}

// tuneComplete is the message tune_complete. It has no best cell when no task has a score in
// every cell.
type tuneComplete struct {
	tuneHead
	Status record.Status  `json:"status"`
	Combo  *int           `json:"best_index,omitempty"`
	Model  string         `json:"best_model_id,omitempty"`
	Params map[string]any `json:"best_params,omitempty"`
	Prompt string         `json:"best_prompt,omitempty"` // of a prompt_tune
	// Score is an estimate that allows for the selection of the cell by the same trials. Observed
	// is the mean score of these trials, and Basis is shrunk or measured, see [record.TuneScore].
	Score    *float64         `json:"best_score,omitempty"`
	Interval *record.Interval `json:"best_score_interval,omitempty"`
	Observed *float64         `json:"best_score_observed,omitempty"`
	Basis    string           `json:"best_score_basis,omitempty"`
	// Rivals are the indexes of the cells that may be as good as the best.
	Rivals []int `json:"rivals,omitempty"`
	// LeftOut lists the tasks without a score in every cell, which do not count in the ranking.
	LeftOut []record.LeftOutTask `json:"left_out,omitempty"`
	// Note is the reason why cells are not ranked or rivals are not determined.
	Note string `json:"note,omitempty"`
}

func (t *tune) complete(e *record.Event) *tuneComplete {
	m := &tuneComplete{tuneHead: t.head("tune_complete"), Status: e.Status}
	if e.Summary == nil || e.Summary.Tune == nil {
		return m
	}
	index := func(name string) int {
		return slices.IndexFunc(t.cells, func(c *record.Cell) bool { return c.Name == name })
	}
	if best := index(e.Summary.Tune.Best); best >= 0 {
		c := t.cells[best]
		m.Combo, m.Model, m.Params, m.Score = &best, targetOf(t.rec, c).Model, c.Params, t.score(best)
		if m.Prompt = t.prompt(c); m.Prompt != promptOf(c) { // the parameter is the place of a proposed prompt
			m.Params = maps.Clone(c.Params)
			m.Params[eval.ParamSystemPrompt] = m.Prompt
		}
	}
	if s := e.Summary.Tune.Score; s != nil {
		m.Score, m.Interval, m.Observed, m.Basis = &s.Value, &s.Interval, &s.Observed, s.Basis
	}
	m.Note = e.Summary.Tune.Note
	if e.Summary.Common != nil {
		m.LeftOut = e.Summary.Common.LeftOut
	}
	for _, name := range e.Summary.Tune.Rivals {
		if i := index(name); i >= 0 {
			m.Rivals = append(m.Rivals, i)
		}
	}
	return m
}
