//go:build unix

package main_test

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/figure"
	"waza/runner/report"
	"waza/runner/stats"
)

var columnGap = regexp.MustCompile(` {2,}`)

// cellsOf returns the cells of a row by the start of its table, a title and a name.
func (l *ledger) cellsOf(table, title, name string) []string {
	l.t.Helper()
	_, rest, ok := strings.Cut("\n"+table, "\n"+title)
	require.True(l.t, ok, title)
	for line := range strings.Lines(rest) {
		if cells := columnGap.Split(strings.TrimSpace(line), -1); cells[0] == name {
			return cells
		}
	}
	require.Fail(l.t, "no such row", "%s: %s", title, name)
	return nil
}

func score(s float64) string   { return figure.Score(s) }
func percent(s float64) string { return figure.Percent(s) }
func took(ms float64) string   { return report.Duration(time.Duration(ms * float64(time.Millisecond))) }
func whole(n float64) string   { return fmt.Sprint(int64(n)) }

// trials prints the counts that are not 0, as a table does.
func (l *ledger) trials(place, at string) string {
	n := map[string]int{}
	for _, name := range countNames {
		x, ok := l.number(at + "/" + name)
		n[name] = int(x)
		if ok && x > 0 && name != "total" {
			l.mark(place, at+"/"+name)
		}
	}
	s := fmt.Sprintf("%d/%d", n["passed"], n["passed"]+n["failed"]+n["timeouts"])
	for _, x := range []struct{ name, what string }{
		{"errors", "in error"}, {"cancelled", "cancelled"}, {"skipped", "skipped"}, {"needsReview", "to review"},
	} {
		if n[x.name] > 0 {
			s += fmt.Sprintf(", %d %s", n[x.name], x.what)
		}
	}
	return s
}

// rate holds the cells of a pass rate and its interval.
func (l *ledger) rate(place, rate, in, at string) {
	l.t.Helper()
	if l.get(at+"/passRateBounds") != nil {
		l.interval(place, rate, at+"/passRateBounds", figure.PercentInterval)
		require.Equal(l.t, "to review", in)
		return
	}
	l.shows(place, rate, at+"/passRate", percent)
	l.interval(place, in, at+"/passRateInterval", figure.PercentInterval)
}

// medianTime is the number in columns with the heading "Median time".
const medianTime = "durationMs/median"

// headed requires that the heading of times says which one they are.
func (l *ledger) headed(place, text string) {
	l.t.Helper()
	require.Contains(l.t, text, "Median time", place)
	require.NotContains(l.t, text, "Time/trial", "%s: it names no mean and no median", place)
}

// taskCells holds verdict, trials, score, pass rate, interval and time.
func (l *ledger) taskCells(place, at string, cells []string) {
	l.t.Helper()
	verdict := l.text(at + "/verdict")
	if l.get(at+"/flaky") == true {
		verdict += ", flaky"
	}
	require.Equal(l.t, verdict, cells[0])
	require.Equal(l.t, l.trials(place, at+"/counts"), cells[1])
	l.shows(place, cells[2], at+"/score/mean", score)
	l.rate(place, cells[3], cells[4], at+"/counts")
	l.shows(place, cells[5], at+"/"+medianTime, took)
	l.toolCells(place, at, cells[6:])
}

// toolCells holds the tool scores of a task or a cell.
func (l *ledger) toolCells(place, at string, cells []string) {
	l.t.Helper()
	l.shows(place, cells[0], at+"/tools/selection", score)
	l.shows(place, cells[1], at+"/tools/params", score)
	l.shows(place, cells[2], at+"/tools/overall", score)
}

// toolText holds the line with the tool scores of the run.
func (l *ledger) toolText(place, text string) {
	l.t.Helper()
	var n [3]float64
	for i, name := range []string{"selection", "params", "overall"} {
		n[i], _ = l.number("summary/tools/" + name)
	}
	l.holds(place, text, fmt.Sprintf("selection %s, arguments %s, overall %s", score(n[0]), score(n[1]), score(n[2])),
		"summary/tools/selection", "summary/tools/params", "summary/tools/overall")
}

// table holds what waza runs show prints.
func (l *ledger) table(text string) {
	l.headed("table", text)
	for i := range l.len("tasks") {
		at := fmt.Sprintf("tasks/%d", i)
		if l.text(at+"/role") != "" {
			continue
		}
		cells := l.cellsOf(text, l.text(at+"/task")+"\n", l.text(at+"/cell/name"))
		l.taskCells("table", at, cells[1:])
		for k := range l.len(at + "/reasons") {
			n, _ := l.number(fmt.Sprintf("%s/reasons/%d/trials", at, k))
			l.holds("table", text, fmt.Sprintf("in %v of %d trials", n, l.len(at+"/trials")), fmt.Sprintf("%s/reasons/%d/trials", at, k))
		}
	}
	for i := range l.len("summary/groups") {
		at := fmt.Sprintf("summary/groups/%d", i)
		cells := l.cellsOf(text, "Cell ", l.text(at+"/group"))
		l.holds("table", cells[1], l.passedOf(at+"/tasks"), at+"/tasks/passed", at+"/tasks/total")
		require.Equal(l.t, l.trials("table", at), cells[2])
		l.rate("table", cells[3], cells[4], at)
		l.shows("table", cells[5], at+"/score/mean", score)
		l.shows("table", cells[6], at+"/"+medianTime, took)
		l.is("table", l.parsed(cells[7]), at+"/usage/inputTokens", at+"/usage/outputTokens")
		l.shows("table", cells[8], at+"/usage/costUsd", figure.Cost)
		l.toolCells("table", at, cells[9:])
	}
	for i := range l.len("summary/metrics") {
		at := fmt.Sprintf("summary/metrics/%d", i)
		threshold, _ := l.number(at + "/threshold")
		cells := l.cellsOf(text, "Metrics\n", l.text(at+"/name"))
		l.shows("table", cells[1], at+"/value", func(v float64) string { return figure.Score(v, threshold) })
		if threshold > 0 {
			l.holds("table", cells[2], "at least "+figure.Threshold(threshold), at+"/threshold")
		}
	}
	if n, _ := l.number("summary/selfReported"); n > 0 {
		l.holds("table", strings.Join(strings.Fields(text), " "), fmt.Sprintf("%v passes depend on self-reported tool calls", n), "summary/selfReported")
	}
	l.common("table", text)
	l.toolText("table", text)
	l.beside("table", text)
	l.calibrations(text)
	l.closing("table", text)
}

// common holds the sentence about the tasks without a score in every cell.
func (l *ledger) common(place, text string) {
	const at = "summary/common"
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "")), " ")
	left := l.len(at + "/leftOut")
	if n, ok := l.number(at + "/tasks"); ok {
		l.holds(place, text, fmt.Sprintf("%v of %v tasks. Left out: ", n, n+float64(left)), at+"/tasks")
	}
	for i := range left {
		task := fmt.Sprintf("%s/leftOut/%d", at, i)
		var cells []string
		for j := range l.len(task + "/cells") {
			cells = append(cells, l.text(fmt.Sprintf("%s/cells/%d", task, j)))
		}
		count, _ := l.number(task + "/cellCount")
		require.Len(l.t, cells, int(count))
		l.holds(place, text, fmt.Sprintf("%s (%s in %s)", l.text(task+"/task"), l.text(task+"/why"), strings.Join(cells, ", ")),
			task+"/cellCount")
	}
}

func (l *ledger) passedOf(at string) string {
	passed, _ := l.number(at + "/passed")
	total, _ := l.number(at + "/total")
	return fmt.Sprintf("%v/%v", passed, total)
}

// gain prints a number with skills and without.
func (l *ledger) gain(
	place, at string, form, change func(float64) string, interval func(low, high float64) string, unit string,
) (with, without, gain string) {
	for name, to := range map[string]*string{"with": &with, "without": &without} {
		n, ok := l.number(at + "/" + name)
		if !ok {
			return "–", "–", "–"
		}
		*to = form(n)
		l.mark(place, at+"/"+name)
	}
	n, _ := l.number(at + "/gain")
	l.mark(place, at+"/gain")
	return with, without, change(n) + unit + " " + l.intervalText(place, at+"/interval", interval)
}

// beside holds the texts about the baseline and trigger tests.
func (l *ledger) beside(place, text string) {
	base := "summary/baseline"
	with, without, gain := l.gain(place, base+"/passRate", percent, figure.Points, figure.PointsInterval, " points")
	require.Contains(l.t, text, fmt.Sprintf("ith skills %s, without %s: %s", with, without, gain))
	var classes []string
	for _, c := range []struct{ name, what string }{
		{"improved", "improved"}, {"regressed", "regressed"}, {"unchanged", "unchanged"},
		{"noDifference", "without a difference"}, {"undecided", "undecided"},
	} {
		n, _ := l.number(base + "/" + c.name)
		classes = append(classes, fmt.Sprintf("%v %s", n, c.what))
		l.mark(place, base+"/"+c.name)
	}
	require.Contains(l.t, text, strings.Join(classes, ", "))
	pairs, _ := l.number(base + "/pairs")
	l.holds(place, text, fmt.Sprintf("over %v tasks", pairs), base+"/pairs")
	p, _ := l.number(base + "/p")
	l.holds(place, text, "(p "+figure.P(p, 1-stats.DefaultConfidence)+")", base+"/p")
	for name, form := range map[string]func(float64) string{"accuracy": percent, "precision": score, "recall": score} {
		n, _ := l.number("summary/triggers/" + name)
		l.holds(place, text, name+" "+form(n), "summary/triggers/"+name)
	}
	f1, _ := l.number("summary/triggers/f1")
	l.holds(place, text, "F1 "+score(f1), "summary/triggers/f1")
	if early, ok := l.number("summary/triggers/endedEarly"); ok {
		total, _ := l.number("summary/triggers/trials/total")
		l.holds(place, text, fmt.Sprintf("%v of %v trials ended early", early, total), "summary/triggers/endedEarly")
	}
	if place != "table" {
		return
	}
	with, without, gain = l.gain(place, base+"/score", score, figure.Difference, figure.DifferenceInterval, "")
	require.Contains(l.t, text, fmt.Sprintf("Score %s, without %s: %s", with, without, gain))
	errors, _ := l.number(base + "/errors")
	l.holds(place, text, fmt.Sprintf("%v errors without skills", errors), base+"/errors")
	for i := range l.len(base + "/tasks") {
		at := fmt.Sprintf("%s/tasks/%d", base, i)
		cells := l.cellsOf(text, "Baseline, over", l.text(at+"/id"))
		with, without, gain := l.gain(place, at+"/passRate", percent, figure.Points, figure.PointsInterval, "")
		require.Equal(l.t, []string{with, without, gain}, cells[2:5])
		l.shows(place, cells[5], at+"/score/gain", figure.Difference)
	}
	l.holds(place, text, "("+l.intervalText(place, "summary/triggers/accuracyInterval", figure.PercentInterval)+")")
	for i := range l.len("summary/triggers/results") {
		at := fmt.Sprintf("summary/triggers/results/%d", i)
		if l.text(at+"/verdict") == "passed" {
			continue
		}
		cells := l.cellsOf(text, "Prompt ", l.text(at+"/id"))
		triggered, _ := l.number(at + "/triggered")
		answered, _ := l.number(at + "/answered")
		l.holds(place, cells[2], fmt.Sprintf("%v/%v", triggered, answered), at+"/triggered", at+"/answered")
	}
}

func (l *ledger) calibrations(text string) {
	for i := range l.len("summary/calibrations") {
		at := fmt.Sprintf("summary/calibrations/%d", i)
		cells := l.cellsOf(text, "Agreement with people", l.text(at+"/grader"))
		l.shows("table", cells[1], at+"/n", whole)
		if cells[1] != "0" {
			l.shows("table", cells[2], at+"/agreed", percent)
			kappa := "–"
			if k, ok := l.number(at + "/kappa"); ok {
				kappa = figure.Number(k)
				l.mark("table", at+"/kappa")
				if l.get(at+"/kappaInterval") != nil {
					kappa += " " + l.intervalText("table", at+"/kappaInterval", figure.NumberInterval)
				}
			}
			require.Equal(l.t, kappa, cells[3])
			l.shows("table", cells[4], at+"/meanAbsoluteDifference", score)
			l.shows("table", cells[5], at+"/meanDifference", figure.Difference)
		}
		if pending, _ := l.number(at + "/pending"); pending > 0 {
			l.holds("table", text, fmt.Sprintf("%v trials are not compared yet", pending), at+"/pending")
		}
	}
}

// closing holds the lines that sum up.
func (l *ledger) closing(place, text string) {
	number := func(path string) int { n, _ := l.number(path); return int(n) }
	l.holds(place, text, fmt.Sprintf("%d of %d tasks passed", number("summary/passed"), number("summary/total")),
		"summary/passed", "summary/total")
	counted := number("summary/trials/passed") + number("summary/trials/failed") + number("summary/trials/timeouts")
	l.holds(place, text, fmt.Sprintf("%d of %d counted trials passed", number("summary/trials/passed"), counted),
		"summary/trials/passed", "summary/trials/failed", "summary/trials/timeouts")
	l.holds(place, text, took(float64(number("summary/durationMs"))), "summary/durationMs")
	if place == "table" {
		for _, x := range []struct{ name, what string }{{"failed", "failed"}, {"timeouts", "timed out"}, {"needsReview", "to review"}} {
			if n := number("summary/" + x.name); n > 0 {
				l.holds(place, text, fmt.Sprintf("%d %s", n, x.what), "summary/"+x.name)
			}
		}
		l.holds(place, text, fmt.Sprintf("%d tasks are flaky", number("summary/flaky")), "summary/flaky")
	} else {
		l.holds(place, text, fmt.Sprintf("%d in error", number("summary/trials/errors")), "summary/trials/errors")
		if n := number("summary/trials/needsReview"); n > 0 {
			l.holds(place, text, fmt.Sprintf("%d to review", n), "summary/trials/needsReview")
		}
	}
	usage := func(at string) string {
		usd, _ := l.number(at + "/costUsd")
		for _, name := range []string{"inputTokens", "outputTokens", "costUsd"} {
			l.mark(place, at+"/"+name)
		}
		return fmt.Sprintf("%d tokens, %s", number(at+"/inputTokens")+number(at+"/outputTokens"), figure.Cost(usd))
	}
	l.holds(place, text, fmt.Sprintf("%s (agents %s; judges %s)", usage("summary/usage"),
		usage("summary/usageByRole/agent"), usage("summary/usageByRole/judges")))
}

// markdown holds the summary for a step.
func (l *ledger) markdown(text string) {
	l.headed("markdown", text)
	row := func(name string) []string {
		for line := range strings.Lines(text) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			for i := range min(2, len(cells)) {
				if cells[i] == "`"+name+"`" {
					return cells[i+1:]
				}
			}
		}
		require.Fail(l.t, "no such row", name)
		return nil
	}
	for i := range l.len("tasks") {
		at := fmt.Sprintf("tasks/%d", i)
		if l.text(at+"/role") == "" {
			l.taskCells("markdown", at, row(l.text(at+"/id")))
		}
	}
	for i := range l.len("summary/groups") {
		at := fmt.Sprintf("summary/groups/%d", i)
		cells := row(l.text(at + "/group"))
		require.Equal(l.t, l.trials("markdown", at), cells[0])
		l.rate("markdown", cells[1], cells[2], at)
		l.toolCells("markdown", at, cells[len(cells)-3:])
	}
	for i := range l.len("summary/metrics") {
		at := fmt.Sprintf("summary/metrics/%d", i)
		threshold, _ := l.number(at + "/threshold")
		cells := row(l.text(at + "/name"))
		l.shows("markdown", cells[0], at+"/value", func(v float64) string { return figure.Score(v, threshold) })
		if threshold > 0 {
			l.shows("markdown", cells[1], at+"/threshold", figure.Threshold)
		}
	}
	l.common("markdown", text)
	l.beside("markdown", text)
	l.closing("markdown", text)
}
