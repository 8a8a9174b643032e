package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// remarks are the notes on the limits of a comparison of two runs. They own their list.
type remarks struct {
	*pairing
	list []ComparisonNote
}

// all lists the limits of the comparison.
func (m *remarks) all() []ComparisonNote {
	for _, s := range []*side{m.ref, m.run} {
		m.state(s)
	}
	if why := m.ref.head.Sandbox.Differs(m.run.head.Sandbox); why != "" {
		m.add("%s", why)
	}
	m.place()
	if !m.tested.Open {
		m.tooFew()
	}
	m.nonePassed()
	m.stopping()
	m.excludesZero()
	waiting, silent := 0, 0
	for _, t := range m.result.Uncounted {
		if t.ReferenceBounds != nil || t.RunBounds != nil {
			waiting++
		} else {
			silent++
		}
	}
	if silent > 0 {
		m.add("%s not compared, because no trial says anything about the agent in one of the runs",
			text.Plural(silent, "1 task is", strconv.Itoa(silent)+" tasks are"))
	}
	if waiting > 0 {
		m.add("%s not compared, because trials wait for a person's score: run waza review",
			text.Plural(waiting, "1 task is", strconv.Itoa(waiting)+" tasks are"))
	}
	if a, b := m.ref.head, m.run.head; m.everywhere && a.Executor == b.Executor && a.Agent == b.Agent && a.Model == b.Model &&
		a.Sandbox.Differs(b.Sandbox) == "" && (a.Sandbox == nil || b.Sandbox == nil || a.Sandbox.Tier == b.Sandbox.Tier) {
		m.add("the execution of every task changed: settings, skills or the program")
	}
	if n := m.run.cached[m.ref.rec.RunID]; n > 0 {
		m.addOf(m.run.head.Name, "reuses %s of the reference: these add no information about their tasks", text.Count(n, "trial", "trials"))
	}
	if m.ref.outside+m.run.outside > 0 {
		m.add("baselines and trigger tests are not compared")
	}
	return m.list
}

// place adds how often the baseline was compared, from the second time on.
func (m *remarks) place() {
	c := m.result.Comparison
	if c == nil || !m.first {
		return
	}
	if c.Error != "" {
		m.add("this comparison with the baseline could not be counted: %s", c.Error)
	}
	if c.Place < 2 {
		return
	}
	m.add("this is the %s comparison with this baseline; p-values are multiplied by %.0f, so that all of them together err in at most %s",
		ordinal(c.Place), 1/c.Weight, figure.Confidence(1-m.options.Confidence))
}

// ordinal returns the place in words up to twelfth, and then in digits.
func ordinal(n int) string {
	words := []string{
		"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
	}
	if n >= 1 && n <= len(words) {
		return words[n-1]
	}
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// tooFew adds the limits that the numbers of trials set, whatever their results.
func (m *remarks) tooFew() {
	few, telling := 0, 0
	least := 1.0
	for _, t := range m.pairs {
		if !t.Untestable() && !t.MayShow(m.options.Confidence) {
			few++
		}
		if t.ScoresInformative && !t.CouldStop() {
			telling++
			least = min(least, leastOfScores(t.A.Share.N, t.B.Share.N))
		}
	}
	switch {
	case few == 0:
	case few == len(m.pairs):
		m.add("no task has enough trials to show even the largest difference: %s; only all tasks together are tested", m.enough())
	default:
		m.add("%s not enough trials to show even the largest difference: "+m.enough(),
			text.Plural(few, "1 task has", strconv.Itoa(few)+" tasks have"))
	}
	if least <= 1-m.options.Confidence && least*float64(telling) > 1-m.options.Confidence {
		m.add("scores alone cannot show a change of a single task: with so few trials their p-values are at least %.2g, and %d tasks are tested",
			least, telling)
	}
}

// enough states how many trials of each task would show the largest difference, at the level of
// [pairing.trialsNeeded].
func (m *remarks) enough() string {
	n, ok := stats.TrialsNeeded(1, 0, m.strictest(), tally.Power)
	if !ok {
		return "more than 10,000 trials of each task would"
	}
	return fmt.Sprintf("%d trials of each task would", n)
}

// nonePassed adds that everything failed, where the tests do not report it.
func (m *remarks) nonePassed() {
	r := &m.result
	passed := 0
	for _, t := range r.Tasks {
		passed += t.Reference.Passed + t.Run.Passed
	}
	switch {
	case len(r.Tasks) == 0:
	case passed == 0:
		m.add("no trial of the compared tasks passed in either run")
	case r.NonePassed() && !r.ShowsRegression():
		m.addOf(m.run.head.Name, "passed no trial of the compared tasks, in too few trials for a test")
	}
}

// NoContradiction explains an interval that excludes 0 beside something undecided.
const NoContradiction = `An interval that excludes 0 beside "undecided" is no contradiction: an interval counts ` +
	`by itself, a test allows for the other tests and for earlier comparisons`

// excludesZero explains intervals that exclude 0 where something is undecided.
func (m *remarks) excludesZero() {
	r := &m.result
	if r.Active {
		return
	}
	away := func(c *record.Contrast) bool { return c != nil && c.Interval.ExcludesZero() }
	if r.Outcome == record.OutcomeUndecided && (away(r.PassRate) || away(r.Score)) ||
		slices.ContainsFunc(r.Tasks, func(t TaskComparison) bool {
			return t.Class == record.Undecided && (away(&t.PassRate) || away(t.Score))
		}) {
		m.add("%s", NoContradiction)
	}
}

// leastOfScores returns the least p-value of a permutation test of a and b scores: 2 divided by
// the number of ways to distribute them.
func leastOfScores(a, b int) float64 {
	return stats.Fisher(stats.Share{N: a}, stats.Share{Passed: b, N: b}).P
}

// stopping adds the limits of trials that could stop early.
func (m *remarks) stopping() {
	stopping, telling, untestable := 0, false, 0
	for _, t := range m.pairs {
		if t.CouldStop() {
			stopping++
			telling = telling || t.ScoresInformative
		}
		if t.Untestable() {
			untestable++
		}
	}
	if untestable > 0 {
		m.add("%s stopped early and then graded differently, so nothing can be shown about %s: run without stopping to compare",
			text.Plural(untestable, "1 task was", strconv.Itoa(untestable)+" tasks were"),
			text.Plural(untestable, "it", "them"))
	}
	if stopping == 0 {
		return
	}
	text := "trials could stop early: tests allow for that, and have less power than tests of all trials"
	if telling {
		text += "; scores of such tasks are not tested"
	}
	m.add("%s", text+"; run with --stopping 0 for more power")
}

func (m *remarks) add(format string, args ...any) { m.addOf("", format, args...) }

func (m *remarks) addOf(run, format string, args ...any) {
	m.list = append(m.list, ComparisonNote{run, fmt.Sprintf(format, args...)})
}

// state adds the incomplete parts of a run.
func (m *remarks) state(s *side) {
	switch name := s.head.Name; s.head.Status {
	case record.StatusCompleted:
	case record.StatusRunning:
		m.addOf(name, "is still running, so there is no verdict: compare it when it has ended, or use waza decide, which may look at any time")
	default:
		m.addOf(name, "is %s: only its ended tasks are compared", s.head.Status)
	}
	if s.amended {
		m.addOf(s.head.Name, "was regraded or reviewed: its verdicts may come from different graders than in the run")
	}
	if parts := uncounted(s.head.Trials); parts != "" {
		m.addOf(s.head.Name, "has trials that do not count: %s", parts)
	}
}

// uncounted lists the trials that do not count, by their outcome.
func uncounted(c record.Counts) string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{
		{c.Errors, "in error"}, {c.Cancelled, "cancelled"}, {c.Skipped, "skipped"}, {c.NeedsReview, "to review"},
		{c.Total - c.Done(), "not finished"},
	} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(parts, ", ")
}
