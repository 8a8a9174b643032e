package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/compare"
	"waza/runner/figure"
	"waza/runner/record"
)

// Comparison prints a comparison of runs.
func Comparison(w io.Writer, c *compare.Comparison, o Options) error {
	return comparedDocument(c).text(w, o)
}

// ComparisonMarkdown writes a comparison of runs for a pull request or the summary of a step.
func ComparisonMarkdown(w io.Writer, c *compare.Comparison) error {
	_, err := io.WriteString(w, comparedDocument(c).markdown())
	return err
}

// mostListed is the most tasks in a list, and mostNames the most names in a line.
const (
	mostListed = 200
	mostNames  = 20
)

// letter returns the letter of a run of a comparison, because ids are long.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letter(i/26-1) + letter(i%26)
}

// compared builds the part of a document that is about one suite.
type compared struct {
	*compare.Comparison
	doc *document
}

func comparedDocument(c *compare.Comparison) *document {
	doc := &document{}
	suites := c.Suites()
	for _, one := range suites {
		if len(suites) > 1 {
			doc.section("").line(item{text: "Suite ", colour: bold}, code(one.Runs[0].Suite.Name))
		}
		(&compared{Comparison: one, doc: doc}).all()
	}
	single := doc.section("")
	for _, s := range c.Single {
		single.line(item{text: "Not compared: the suite ", colour: yellow}, code(s.Name), plain(" has too few runs"))
	}
	return doc
}

// all adds everything about the suite.
func (d *compared) all() {
	d.runs()
	heading := d.doc.section("")
	for i := range d.Comparisons {
		d.headline(heading, i)
	}
	d.collapsed(heading)
	d.policies()
	d.tasks()
	d.suite()
	for i := range d.Comparisons {
		d.remarks(i)
	}
}

func (d *compared) runs() {
	s := d.doc.section("")
	head := []string{"", "Run", "Suite", "Executor", "Started", "Tasks passed", "Trials passed"}
	judged := slices.ContainsFunc(d.Runs, func(r compare.ComparedRun) bool { return r.Judged != nil })
	if judged {
		head = append(head, "Judged")
	}
	s.add(heads(head...)...)
	s.spare = []int{4, 3, 2, 5}
	for i, r := range d.Runs {
		name := r.Name
		if r.File != "" {
			name = r.File
		}
		executor := strings.Join(strings.Fields(strings.Join([]string{r.Executor, r.Agent, r.Model}, " ")), " ")
		started := "–"
		if !r.StartedAt.IsZero() {
			started = r.StartedAt.Local().Format("2006-01-02 15:04")
		}
		cells := []item{plain(letter(i)), code(name), code(r.Suite.Name), code(executor), plain(started),
			plain(fmt.Sprintf("%d/%d", r.Tasks.Passed, r.Tasks.Total)), plain(trials(r.Trials))}
		switch {
		case r.Judged != nil:
			cells = append(cells, plain(judgedCell(r)))
		case judged:
			cells = append(cells, plain("–"))
		}
		s.add(cells...)
	}
}

// judgedCell returns the grade of a run of the kind judge.
func judgedCell(r compare.ComparedRun) string {
	if r.Judged.OverallScore == nil {
		return "–"
	}
	leftOut := ""
	if r.JudgedLeftOut > 0 {
		leftOut = fmt.Sprintf("; without %s", text.Count(r.JudgedLeftOut, "task", "tasks"))
	}
	return fmt.Sprintf("%s (%s%s)", r.Judged.OverallGrade, overall(*r.Judged.OverallScore), leftOut)
}

// headline adds a line with the result of a run.
func (d *compared) headline(s *section, i int) {
	c := &d.Comparisons[i]
	s.line(item{text: fmt.Sprintf("%s against A: ", letter(i+1)), colour: bold},
		classCount(c.Regressed, "regressed", red), plain(", "), classCount(c.Improved, "improved", green),
		plain(fmt.Sprintf(", %d unchanged, %d without a difference, %d undecided of %s, each by itself", c.Unchanged,
			c.NoDifference, c.Undecided, text.Count(c.Compared, "task", "tasks"))))
}

// collapsed names the tasks that passed always before and never now, in too few trials for a
// test, and states that a rule decides about them.
func (d *compared) collapsed(s *section) {
	for i := range d.Comparisons {
		list, l := d.Comparisons[i].Collapsed(), letter(i+1)
		for n, t := range list {
			if n == mostNames {
				s.line(plain(fmt.Sprintf("and %d more such tasks, which --json lists", len(list)-n)))
				break
			}
			effect := item{text: "--fail-on would fail because of it", colour: red}
			if d.OnCollapsedTasks != compare.OnTasksFail {
				effect = item{text: "--fail-on would not fail because of it", colour: yellow}
			}
			s.line(code(t.ID), plain(" passed "+allOf(t.Reference.Counted())+" of A and none of "+l+", too few for a test: "), effect,
				plain(", by a rule and not by a significance result. An unchanged task does that in up to "+
					figure.Percent(compare.ChanceOfCollapse(t.Reference.Counted(), t.Run.Counted()))+" of comparisons"))
		}
	}
}

func allOf(trials int) string {
	if trials == 1 {
		return "the only trial"
	}
	return fmt.Sprintf("all %d trials", trials)
}

// policies lists the policies that runs break, if any were given.
func (d *compared) policies() {
	s := d.doc.section("")
	for i := range d.Comparisons {
		p, l := d.Comparisons[i].Policies, letter(i+1)
		switch {
		case p == nil:
			continue
		case p.Passed:
			s.line(item{text: l + " keeps the policies", colour: green})
		case p.Unmeasured != "":
			s.line(item{text: "Policy of " + l + ": the regression is not measured: " + p.Unmeasured, colour: red})
		}
		for n, f := range p.Failures {
			if n == mostListed {
				s.line(plain(fmt.Sprintf("and %d more broken policies, which --json lists", len(p.Failures)-n)))
				break
			}
			s.line(item{text: l + " breaks a policy: " + f.Message, colour: red})
		}
		for n, f := range p.Warnings {
			if n == mostNames {
				s.line(plain(fmt.Sprintf("and %d more warnings, which --json lists", len(p.Warnings)-n)))
				break
			}
			s.line(item{text: "Warning: " + f.Message, colour: yellow})
		}
	}
}

func classCount(n int, what string, c colour) item {
	if n == 0 {
		c = 0
	}
	return item{text: fmt.Sprintf("%d %s", n, what), colour: c}
}

var classColour = map[record.Class]colour{record.Improved: green, record.Regressed: red, record.Undecided: yellow}

// tasks lists the tasks that differ in some run, the worst first.
func (d *compared) tasks() {
	order := []record.Class{record.Regressed, record.Improved, record.Undecided}
	rows, alike := d.taskRows()
	s := d.doc.section("")
	if len(d.Comparisons) == 1 {
		s.add(heads("Task", "Became", "Pass rate", "Points", "Score", "p", "To decide")...)
		s.spare = []int{6, 4, 5, 3}
	} else {
		s.add(item{text: "Task", colour: bold}, item{text: "A", colour: bold})
		for i := range d.Comparisons {
			s.rows[0] = append(s.rows[0], item{text: letter(i + 1), colour: bold})
		}
	}
	listed, left := 0, 0
	for _, class := range order {
		for _, r := range rows {
			if r.class != class {
				continue
			}
			if listed++; listed > mostListed {
				left++
				continue
			}
			s.add(r.cells...)
		}
	}
	if len(s.rows) == 1 {
		s.rows = nil
	}
	if left > 0 {
		s.line(plain(fmt.Sprintf("and %d more, which --json lists", left)))
	}
	if n := alike[record.Unchanged]; n > 0 {
		s.line(plain(text.Count(n, "task is", "tasks are") + " unchanged: a difference beyond " + pointsOf(d.Margin) + " is ruled out."))
	}
	if n := alike[record.NoDifference]; n > 0 {
		s.line(plain(text.Count(n, "task shows", "tasks show") +
			" no difference, in too few trials to rule out one beyond " + pointsOf(d.Margin) + "."))
	}
}

func pointsOf(margin float64) string {
	return strings.TrimPrefix(figure.Points(margin), "+") + " points"
}

type comparedRow struct {
	class record.Class
	cells []item
}

// taskRows returns a row for each task that differs in some run, in the order of the reference
// and then of the further runs. It counts the other tasks by their class.
func (d *compared) taskRows() (rows []comparedRow, alike map[record.Class]int) {
	alike = map[record.Class]int{}
	var ids []string
	tasks := map[string][]*compare.TaskComparison{}
	for i := range d.Comparisons {
		for j := range d.Comparisons[i].Tasks {
			t := &d.Comparisons[i].Tasks[j]
			if tasks[t.ID] == nil {
				tasks[t.ID] = make([]*compare.TaskComparison, len(d.Comparisons))
				ids = append(ids, t.ID)
			}
			tasks[t.ID][i] = t
		}
	}
	for _, id := range ids {
		row := comparedRow{class: worstClass(tasks[id])}
		if row.class == record.Unchanged || row.class == record.NoDifference {
			alike[row.class]++
			continue
		}
		if len(d.Comparisons) == 1 {
			row.cells = d.pairCells(tasks[id][0])
		} else {
			row.cells = manyCells(id, tasks[id])
		}
		rows = append(rows, row)
	}
	return rows, alike
}

func worstClass(list []*compare.TaskComparison) record.Class {
	for _, class := range []record.Class{record.Regressed, record.Improved, record.Undecided, record.NoDifference} {
		for _, t := range list {
			if t != nil && t.Class == class {
				return class
			}
		}
	}
	return record.Unchanged
}

// className returns a class in readable form.
func className(c record.Class) string { return strings.ReplaceAll(string(c), "_", " ") }

func (d *compared) pairCells(t *compare.TaskComparison) []item {
	class := className(t.Class)
	if t.By == "score" {
		class += " by score"
	}
	cells := []item{
		code(t.ID), {text: class, colour: classColour[t.Class]},
		plain(figure.Percent(t.PassRate.Reference) + " → " + figure.Percent(t.PassRate.Run)),
		plain(figure.Points(t.PassRate.Difference) + bounds(t.PassRate.Interval, figure.PointsInterval)),
		plain("–"), plain(d.p(t.P)), plain(needed(t.Needed)),
	}
	cells[3].text += shrunkenDifference(t)
	if t.Score != nil {
		cells[4] = plain(figure.Score(t.Score.Reference) + " → " + figure.Score(t.Score.Run))
	}
	return cells
}

// shrunkenDifference formats the shrunken difference of the pass rates to follow other texts; empty without one.
func shrunkenDifference(t *compare.TaskComparison) string {
	if t.Shrunken == nil {
		return ""
	}
	return ", shrunken " + figure.Points(*t.Shrunken)
}

// p formats a p-value with enough digits to compare it with the level.
func (d *compared) p(p float64) string { return figure.P(p, 1-d.Confidence) }

// needed formats how many more trials of each run would give a decision.
func needed(n *record.Needed) string {
	switch {
	case n == nil:
		return ""
	case n.Trials == 0:
		return "more than 10,000 trials"
	}
	return text.Count(n.More, "more trial", "more trials")
}

func manyCells(id string, list []*compare.TaskComparison) []item {
	cells := []item{code(id), plain("–")}
	for _, t := range list {
		if t == nil {
			cells = append(cells, plain("–"))
			continue
		}
		cells[1] = plain(figure.Percent(t.PassRate.Reference))
		cells = append(cells, item{text: figure.Percent(t.PassRate.Run) + " " + className(t.Class) + shrunkenDifference(t), colour: classColour[t.Class]})
	}
	return cells
}
