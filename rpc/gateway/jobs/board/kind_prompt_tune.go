package board

import (
	"cmp"
	"fmt"
	"slices"

	"waza/eval"
	"waza/runner/propose"
	"waza/runner/record"
	"waza/runner/tally"
)

// promptTune creates the messages of prompt_tune: those of a tuning with a system prompt for a
// model in each cell, and those of generations. Prompts from the suite form generation 0.
type promptTune struct {
	*tune
	latest   int          // the number of the last generation
	started  map[int]bool // started generations
	failed   map[int]bool
	asked    []bool   // by cell: one of its tasks has started
	numbered []string // values of system_prompt, in order
}

func newPromptTune(s *session) messages {
	p := &promptTune{started: map[int]bool{}, failed: map[int]bool{}}
	p.tune = newTune(s, p.result)
	p.prompt = p.textOf
	p.asked = make([]bool, len(p.cells))
	for _, c := range p.cells {
		p.latest = max(p.latest, c.Generation)
		if text := promptOf(c); !slices.Contains(p.numbered, text) {
			p.numbered = append(p.numbered, text)
		}
	}
	return p
}

func (p *promptTune) init(j *job, reconnect bool) []byte {
	m := p.start(j, reconnect)
	m.Prompts = len(p.numbered)
	if m.Mode = "quick"; p.latest > 0 {
		m.Mode = "evolutionary"
	}
	return encode(m)
}

// textOf returns the system prompt of a cell; empty for one that no model has proposed.
func (p *promptTune) textOf(c *record.Cell) string {
	if c.Generation == 0 {
		return promptOf(c)
	}
	if proposed := p.proposed(c); proposed != nil {
		return proposed.Text
	}
	return ""
}

// promptOf returns the system prompt of a cell, or the place of one that a model proposes.
func promptOf(c *record.Cell) string {
	text, _ := c.Params[eval.ParamSystemPrompt].(string)
	return text
}

// generation is a message about a generation or one of its prompts. Existing pages read the
// members beside data.
type generation struct {
	tuneHead
	Generation int `json:"generation"`
	// Rounds does not count generation 0, so that pages show N/N for the last generation.
	Rounds     int      `json:"total_generations,omitempty"`
	Prompt     *int     `json:"prompt_index,omitempty"` // among the prompts of the run, counted from 0
	Model      string   `json:"model_id,omitempty"`
	ModelName  string   `json:"model,omitempty"`
	Style      string   `json:"style,omitempty"`
	Text       string   `json:"prompt_text,omitempty"`
	Best       *float64 `json:"best_score,omitempty"`
	BestPrompt *int     `json:"best_prompt_index,omitempty"` // counted like Prompt
	// Survivors are the prompts of the generation that are among the best so far, see survivors.
	Survivors []int  `json:"survivors,omitzero"`
	Error     string `json:"error,omitempty"`
}

func (p *promptTune) about(kind string, g int) *generation {
	return &generation{tuneHead: p.head(kind), Generation: g}
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
		list = p.startGeneration(at.Generation)
		m := p.about("prompt_generated", at.Generation)
		index := slices.Index(p.numbered, at.String())
		m.Prompt, m.Style, m.Text = &index, e.Prompt.Style, e.Prompt.Text
		return append(list, encode(m))
	case e.Type == record.TaskStart && cell >= 0 && !p.asked[cell]:
		c := p.cells[cell]
		p.asked[cell] = true
		if c.Generation > 0 && p.proposed(c) == nil {
			return nil // no prompt exists; the end of the task gives the reason
		}
		list = p.startGeneration(c.Generation)
		m := p.about("prompt_eval_start", c.Generation)
		m.Prompt, m.Model = p.index(c), targetOf(p.rec, c).Model
		m.ModelName = m.Model
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
	m := p.about("generation_start", g)
	m.Rounds = max(1, p.latest)
	return [][]byte{encode(m)}
}

// complete returns the message about the end of a generation when all its cells have ended. The
// best score is the highest one over the tasks that these cells have in common. When no cell has
// such a score, the message has the reason, and the score 0 of the first prompt, because existing
// pages have no default for them.
func (p *promptTune) complete(g int) [][]byte {
	m := p.about("generation_complete", g)
	var sides []tally.Side
	var cells []int
	for i, c := range p.cells {
		if c.Generation != g {
			continue
		}
		if !p.sent[i] {
			return nil
		}
		sides, cells = append(sides, p.side(i)), append(cells, i)
	}
	common, _ := tally.Common(p.names(), sides)
	for i, s := range sides {
		if score := s.ScoreOn(common); score != nil && (m.Best == nil || score.Mean > *m.Best) {
			m.Best, m.BestPrompt = &score.Mean, p.index(p.cells[cells[i]])
		}
	}
	if p.failed[g] {
		return nil
	}
	if m.Best == nil {
		m.Best, m.BestPrompt, m.Error = new(float64), p.index(p.cells[cells[0]]), Failure(p.unscored(cells))
	}
	m.Survivors = p.survivors(g)
	return [][]byte{encode(m)}
}

// unscored returns the reason why these cells have no score in common.
func (p *promptTune) unscored(cells []int) string {
	if slices.ContainsFunc(cells, func(cell int) bool { return p.score(cell) != nil }) {
		return "no task has a score with every prompt"
	}
	for _, cell := range cells {
		if why := p.reason(cell); why != "" {
			return "no trial has a score: " + why
		}
	}
	return "no trial has a score"
}

// survivors returns the prompts of a generation that are among the best of all generations so
// far, the best first: those that the model sees when it proposes more. Like for the model, scores
// are means over the tasks that have one with every prompt. A prompt without a score does not
// survive.
func (p *promptTune) survivors(g int) []int {
	sides, generations := make([]tally.Side, len(p.numbered)), make([]int, len(p.numbered))
	var names []string
	for cell, c := range p.cells {
		if c.Generation > g || !p.isOver(cell) {
			continue
		}
		i := *p.index(c)
		generations[i] = c.Generation
		if sides[i].Tasks == nil {
			sides[i].Tasks = map[string]*record.Task{}
		}
		for task, res := range p.tasksOf(cell) {
			name := fmt.Sprintf("%q %s", p.rec.Tasks[task].Task, c.WithoutPrompt())
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			sides[i].Tasks[name] = res
		}
	}
	type scored struct {
		prompt int
		score  float64
	}
	var all []scored
	common, _ := tally.Common(names, sides)
	for i, s := range sides {
		if score := s.ScoreOn(common); score != nil {
			all = append(all, scored{i, score.Mean})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	list := []int{}
	for _, s := range all[:min(len(all), propose.MostTried)] {
		if generations[s.prompt] == g {
			list = append(list, s.prompt)
		}
	}
	return list
}

// promptResult is the message prompt_eval_result. Existing pages read the members beside data.
type promptResult struct {
	tuneHead
	Generation int      `json:"generation"`
	Prompt     *int     `json:"prompt_index"`
	Model      string   `json:"model_id"`
	Score      *float64 `json:"overall_score"`
	accuracies
	Data promptData `json:"data"`
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
	style, text := "given", p.textOf(c)
	if c.Generation > 0 {
		proposed := p.proposed(c)
		if proposed == nil {
			return p.fail(c.Generation, t.reason(cell))
		}
		style = proposed.Style
	}
	score, index := t.score(cell), p.index(c)
	m := &promptResult{
		tuneHead: t.head("prompt_eval_result"), Generation: c.Generation, Prompt: index,
		Model: targetOf(t.rec, c).Model, Score: score,
		accuracies: t.accuracies(cell), Data: promptData{index, style, score, cut(text, maxPreview)},
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

// proposed returns the prompt that a model proposed for a cell; nil when it did not yet.
func (p *promptTune) proposed(c *record.Cell) *record.Prompt {
	return p.state.Prompt(c.Generation, c.Proposal)
}
