package report

import (
	"fmt"
	"io"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/history"
	"waza/runner/irt"
)

// Subset prints the tasks of a suite, and the subset of them to run for every commit. suite is
// the argument with which waza run finds the suite.
func Subset(w io.Writer, s *history.Subset, suite string, o Options) error {
	var d document
	d.section("").line(item{text: s.Suite.Name, colour: bold}, plain(fmt.Sprintf(", %s of %s", text.Count(s.Runs, "run", "runs"),
		text.Count(s.Configurations, "configuration", "configurations"))))
	t := d.section("")
	t.add(heads("Task", "Subset", "Pass rate", "Difficulty", "Slope", "It")...)
	t.spare = []int{4, 3}
	for i := range s.Tasks {
		t.add(subsetRow(&s.Tasks[i])...)
	}
	if s.Refused == "" {
		t.line(item{text: "Difficulty and slope are those of the logistic curve of item response theory. A higher slope is more informative.", colour: dim})
		l := d.section("")
		measured, chosen := 0, 0
		for i := range s.Tasks {
			if s.Tasks[i].Measured {
				measured++
				if s.Tasks[i].Chosen {
					chosen++
				}
			}
		}
		l.line(item{text: fmt.Sprintf("%d of %s", chosen, text.Count(measured, "task", "tasks")), colour: bold},
			plain(fmt.Sprintf(" keep %s of the order of agents as measured, and at least %s with 95 %% confidence.",
				figure.Percent(*s.Measured), figure.Percent(s.Keep))))
		if n := len(s.Tasks) - measured; n > 0 {
			l.line(plain(text.Count(n, "further task is", "further tasks are") + " not measured, and in the subset for that reason."))
		}
		l.line(plain("The order counts the points by which pairs of agents differ in the whole suite. Run the whole suite for releases."))
		l.line(plain("Run the subset with:"))
		l.line(plain("waza run " + shellWord(suite) + " " + subsetFlags(s.Chosen)))
	}
	return d.text(w, o)
}

// subsetFlags returns the flags that select tasks.
func subsetFlags(ids []string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = "--task " + shellWord(id)
	}
	return strings.Join(list, " ")
}

// shellWord quotes a word for a shell, unless it needs no quotes.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func subsetRow(t *history.SubsetTask) []item {
	cells := []item{code(t.ID), plain("–"), plain(share(t.PassRate)), plain("–"), plain("–"), plain(string(t.Role))}
	if t.Chosen {
		cells[1] = item{text: "yes", colour: green}
	}
	if t.Difficulty != nil {
		cells[3].text = fmt.Sprintf("%.1f", *t.Difficulty)
	}
	if t.Slope != nil {
		cells[4].text = fmt.Sprintf("%.1f", *t.Slope)
	}
	switch {
	case !t.Measured:
		cells[5] = plain("not measured: new, changed, or missing in many runs")
	case t.Role == irt.Contradicts:
		cells[5] = item{text: fmt.Sprintf("contradicts the others (p %s)", figure.P(*t.P)), colour: yellow}
	case t.Role != irt.Informative && t.Role != "":
		cells[5].colour = yellow
	}
	return cells
}
