package board

import (
	"slices"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/tally"
)

// promptTune creates the messages of prompt_tune: those of a tuning with a system prompt for a
// model in each cell, and those of generations. Prompts from the suite form generation 0.
type promptTune struct {
	*tune
	started  map[int]bool // started generations
	failed   map[int]bool
	asked    []bool // by cell: one of its tasks has started
	prompts  map[eval.Proposal]*record.Prompt
	numbered []string // values of system_prompt, in order
}

func newPromptTune(rec *record.Run, before past) messages {
	p := &promptTune{started: map[int]bool{}, failed: map[int]bool{}, prompts: map[eval.Proposal]*record.Prompt{}}
	p.tune = newTune(rec, before, p.result)
	p.asked = make([]bool, len(p.cells))
	for i := range before.prompts {
		prompt := &before.prompts[i]
		p.prompts[eval.Proposal{Generation: prompt.Generation, Number: prompt.Number}] = prompt
	}
	for _, c := range p.cells {
		if text := promptOf(c); !slices.Contains(p.numbered, text) {
			p.numbered = append(p.numbered, text)
		}
	}
	return p
}

// promptOf returns the system prompt of a cell, or the place of one that a model proposes.
func promptOf(c *record.Cell) string {
	text, _ := c.Params[eval.ParamSystemPrompt].(string)
	return text
}

// generation is a message about a generation or one of its prompts. Existing pages read the
// members beside data.
type generation struct {
	Type       string   `json:"type"`
	JobID      string   `json:"job_id"`
	TuneID     string   `json:"tune_id"`
	Generation int      `json:"generation"`
	Prompt     *int     `json:"prompt_index,omitempty"` // among the prompts of the run, counted from 0
	Model      string   `json:"model_id,omitempty"`
	Style      string   `json:"style,omitempty"`
	Text       string   `json:"prompt_text,omitempty"`
	Best       *float64 `json:"best_score,omitempty"`
	Error      string   `json:"error,omitempty"`
}

func (p *promptTune) about(kind string, g int) *generation {
	return &generation{Type: kind, JobID: p.rec.RunID, TuneID: p.rec.RunID, Generation: g}
}

// index returns the number of a cell's prompt, counted from 0.
func (p *promptTune) index(c *record.Cell) *int {
	i := slices.Index(p.numbered, promptOf(c))
	return &i
}

func (p *promptTune) event(e *record.Event) (list [][]byte) {
	cell := p.cellOf(e)
	switch {
	case e.Type == record.PromptProposed && e.Prompt != nil:
		at := eval.Proposal{Generation: e.Prompt.Generation, Number: e.Prompt.Number}
		p.prompts[at] = e.Prompt
		list = p.startGeneration(at.Generation)
		m := p.about("prompt_generated", at.Generation)
		index := slices.Index(p.numbered, at.String())
		m.Prompt, m.Style, m.Text = &index, e.Prompt.Style, e.Prompt.Text
		return append(list, encode(m))
	case e.Type == record.TaskStart && cell >= 0 && !p.asked[cell]:
		c := p.cells[cell]
		p.asked[cell] = true
		if c.Generation > 0 && p.prompts[place(c)] == nil {
			return nil // no prompt exists; the end of the task gives the reason
		}
		list = p.startGeneration(c.Generation)
		m := p.about("prompt_eval_start", c.Generation)
		m.Prompt, m.Model = p.index(c), targetOf(p.rec, c).Model
		return append(list, encode(m))
	}
	list = p.tune.event(e)
	if list != nil && cell >= 0 {
		list = append(list, p.complete(p.cells[cell].Generation)...)
	}
	return list
}

// startGeneration returns the message about the start of a generation, once.
func (p *promptTune) startGeneration(g int) [][]byte {
	if p.started[g] {
		return nil
	}
	p.started[g] = true
	return [][]byte{encode(p.about("generation_start", g))}
}

// complete returns the message about the end of a generation when all its cells have ended.
func (p *promptTune) complete(g int) [][]byte {
	m := p.about("generation_complete", g)
	for i, c := range p.cells {
		if c.Generation != g {
			continue
		}
		if !p.sent[i] {
			return nil
		}
		if score := p.score(i); score != nil && (m.Best == nil || *score > *m.Best) {
			m.Best = score
		}
	}
	if p.failed[g] {
		return nil
	}
	return [][]byte{encode(m)}
}

// promptResult is the message prompt_eval_result. Existing pages read the members beside data.
type promptResult struct {
	Type       string     `json:"type"`
	JobID      string     `json:"job_id"`
	TuneID     string     `json:"tune_id"`
	Generation int        `json:"generation"`
	Prompt     *int       `json:"prompt_index"`
	Model      string     `json:"model_id"`
	Score      *float64   `json:"overall_score"`
	ToolScore  *float64   `json:"tool_accuracy"`
	ParamScore *float64   `json:"param_accuracy"`
	Data       promptData `json:"data"`
}

type promptData struct {
	Prompt  *int     `json:"prompt_index"`
	Style   string   `json:"style"`
	Score   *float64 `json:"score"`
	Preview string   `json:"prompt_preview"`
}

// maxPreview is the maximum length of a prompt preview in characters.
const maxPreview = 200

// result returns the messages about a cell that has ended.
func (p *promptTune) result(t *tune, cell int) [][]byte {
	c := t.cells[cell]
	style, text := "given", promptOf(c)
	if c.Generation > 0 {
		proposed := p.prompts[place(c)]
		if proposed == nil {
			return p.fail(c.Generation, t.reason(cell))
		}
		style, text = proposed.Style, proposed.Text
	}
	score, index := t.score(cell), p.index(c)
	m := &promptResult{
		Type: "prompt_eval_result", JobID: t.rec.RunID, TuneID: t.rec.RunID, Generation: c.Generation, Prompt: index, Model: targetOf(t.rec, c).Model, Score: score,
		Data: promptData{index, style, score, cut(text, maxPreview)},
	}
	if s := tally.ToolsOver(t.resultsOf(cell)); s != nil {
		m.ToolScore, m.ParamScore = &s.Selection, s.Params
	}
	return [][]byte{encode(m)}
}

// fail returns the message about a generation without prompts, once.
func (p *promptTune) fail(g int, why string) [][]byte {
	if p.failed[g] {
		return nil
	}
	p.failed[g] = true
	m := p.about("generation_error", g)
	m.Error = Failure(why)
	return [][]byte{encode(m)}
}

// place returns the place of a cell's prompt among those that a model proposes.
func place(c *record.Cell) eval.Proposal {
	return eval.Proposal{Generation: c.Generation, Number: c.Proposal}
}
