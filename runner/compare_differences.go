package runner

import (
	"fmt"
	"strconv"
	"strings"
)

// differences says what else differs between the runs.
func (p *pairing) differences() {
	p.changedTasks()
	a, b := p.ref, p.run
	x, y := a.rec.Config, b.rec.Config
	for _, d := range []Difference{
		{"suite", a.head.Suite.Name, b.head.Suite.Name},
		{"suite file", a.head.Suite.Path, b.head.Suite.Path},
		{"suite version", a.head.Suite.Version, b.head.Suite.Version},
		{"executor", a.head.Executor, b.head.Executor},
		{"agent", a.head.Agent, b.head.Agent},
		{"model", a.head.Model, b.head.Model},
		{"judge model", x.JudgeModel, y.JudgeModel},
		{"trials per task", strconv.Itoa(x.Trials), strconv.Itoa(y.Trials)},
		{"timeout", seconds(x.TimeoutSeconds).String(), seconds(y.TimeoutSeconds).String()},
		{"attempts", strconv.Itoa(max(1, x.MaxAttempts)), strconv.Itoa(max(1, y.MaxAttempts))},
		{"workers", strconv.Itoa(x.ActualWorkers), strconv.Itoa(y.ActualWorkers)},
		{"context directory", x.ContextDir, y.ContextDir},
	} {
		if d.Reference != d.Run {
			p.result.Differences = append(p.result.Differences, d)
		}
	}
}

// changedTasks says of tasks whether they themselves are others. Where all are
// executed otherwise, it is a setting of the suite, not the tasks, that changed;
// records without hashes tell nothing.
func (p *pairing) changedTasks() {
	execution, graders, known := 0, 0, 0
	for i, t := range p.pairs {
		a, b := t.ref.ref, t.run.ref
		if a.Hash == "" || b.Hash == "" || a.Execution == "" || b.Execution == "" {
			continue
		}
		known++
		switch {
		case a.Execution != b.Execution:
			execution++
			p.result.Tasks[i].Changed = ChangedExecution
		case a.Hash != b.Hash:
			graders++
			p.result.Tasks[i].Changed = ChangedGraders
		}
	}
	if execution < known || known < 2 {
		return
	}
	for i := range p.result.Tasks {
		p.result.Tasks[i].Changed = ""
	}
	p.everywhere = true
}

// notes says what limits the comparison.
func (p *pairing) notes() {
	for _, s := range []*side{p.ref, p.run} {
		p.noteState(s)
	}
	r := &p.result
	single := 0
	for _, t := range p.pairs {
		if min(t.a.N, t.b.N) < 2 {
			single++
		}
	}
	switch {
	case single == 0:
	case single == len(p.pairs):
		p.note("one trial per task: nothing can be decided of single tasks, only of the suite")
	default:
		p.note("%s one trial only in one of the runs, so that nothing can be decided of %s", plural(single, "1 task has", strconv.Itoa(single)+" tasks have"), plural(single, "it", "them"))
	}
	if n := len(r.Uncounted); n > 0 {
		p.note("%s not compared, for no trial says anything of the agent in one of the runs", plural(n, "1 task was", strconv.Itoa(n)+" tasks were"))
	}
	if a, b := p.ref.head, p.run.head; p.everywhere && a.Executor == b.Executor && a.Agent == b.Agent && a.Model == b.Model {
		p.note("what is executed is another in every task: settings, skills or the program")
	}
	if n := p.run.cached[p.ref.rec.RunID]; n > 0 {
		p.noteOf(p.run.head.Name, "has taken %s over from the reference: of their tasks it says nothing new", plural(n, "1 trial", strconv.Itoa(n)+" trials"))
	}
	if p.ref.beside+p.run.beside > 0 {
		p.note("baselines and trigger tests are not compared")
	}
}

func (p *pairing) note(format string, args ...any) { p.noteOf("", format, args...) }

func (p *pairing) noteOf(run, format string, args ...any) {
	p.result.Notes = append(p.result.Notes, ComparisonNote{run, fmt.Sprintf(format, args...)})
}

// noteState says what is missing of a run.
func (p *pairing) noteState(s *side) {
	switch name := s.head.Name; s.head.Status {
	case StatusCompleted:
	case StatusRunning:
		p.noteOf(name, "goes on: what had ended is compared")
	default:
		p.noteOf(name, "is %s: what had ended is compared", s.head.Status)
	}
	if s.amended {
		p.noteOf(s.head.Name, "was graded anew or reviewed: its verdicts may be those of other graders than it was run with")
	}
	if s.stopped > 0 {
		p.noteOf(s.head.Name, "stopped %s early, whose rates are further from the threshold than the true ones, and less certain than told", plural(s.stopped, "1 task", strconv.Itoa(s.stopped)+" tasks"))
	}
	if parts := uncounted(s.head.Trials); parts != "" {
		p.noteOf(s.head.Name, "has trials that say nothing of the agent, and are left out: %s", parts)
	}
}

// uncounted lists the trials that do not count, by what became of them.
func uncounted(c Counts) string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{c.Errors, "in error"}, {c.Cancelled, "cancelled"}, {c.Skipped, "skipped"}, {c.NeedsReview, "to review"}, {c.Total - c.Done(), "not finished"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Partial reports whether tasks that both runs have could not be compared.
func (r *RunComparison) Partial() bool { return len(r.Uncounted) > 0 }

// Dropped counts tasks that regressed, or of which a drop was seen that could be chance.
func (r *RunComparison) Dropped() int {
	n := 0
	for _, t := range r.Tasks {
		d := t.PassRate.Difference
		if t.Score != nil && d > -sameNumber && d < sameNumber {
			d = t.Score.Difference
		}
		if t.Class == Regressed || d <= -sameNumber {
			n++
		}
	}
	return n
}
