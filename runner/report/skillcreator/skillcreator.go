// Package skillcreator writes a run as an iteration in the workspace of skill-creator, whose viewer and
// programs read it. Call [Write] for the files of the iteration.
package skillcreator

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"

	"waza/runner/record"
	"waza/runner/report"
)

// The arms of a comparison.
const (
	withSkill    = "with_skill"
	withoutSkill = "without_skill" // the baseline
	oldSkill     = "old_skill"     // the baseline whose agent has earlier skills
)

// Write writes a run. Trigger tests are left out. Trials that do not count have outputs, and a note
// in place of a grading.
func Write(create report.Create, h record.Handle) error {
	if _, err := h.Results(); err != nil { // so that damage and trials need no further reading
		return err
	}
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	head, err := headOf(h)
	if err != nil {
		return err
	}
	blobs, err := h.Blobs()
	if err != nil {
		return err
	}
	defer blobs.Close()
	w := &writer{create: create, blobs: blobs, tasks: h.Record().Tasks, evals: evalsOf(h.Record()), bench: benchmark{Metadata: head}}
	w.baseline = withoutSkill
	if b := h.Record().Baseline; b != nil && b.Arm().HasSkills() {
		w.baseline = oldSkill
		w.note(oldSkill + " is the agent " + b.Arm().String())
	}
	if damage != nil {
		w.note(damage.String())
	}
	if err := h.Trials(w.trial); err != nil {
		return err
	}
	return w.finish()
}

// An eval is a task with its baseline.
type eval struct {
	id     any // a number or a text
	name   string
	folder string
	meta   *metadata // nil without trials
}

// evalsOf returns the eval of each task of a run; nil for trigger tests.
func evalsOf(rec *record.Run) []*eval {
	evals := make([]*eval, len(rec.Tasks))
	byTask := map[string]*eval{}
	numbered := true
	var names report.Names
	for i := range rec.Tasks {
		ref := &rec.Tasks[i]
		if ref.Role != record.RoleTask {
			continue
		}
		_, number := numberOf(ref.ID)
		numbered = numbered && number
		evals[i] = &eval{id: ref.ID, name: cmp.Or(ref.Name, ref.ID), folder: names.Add("eval-" + report.FileName(ref.ID, "task"))}
		byTask[ref.ID] = evals[i]
	}
	for i := range rec.Tasks {
		if ref := &rec.Tasks[i]; ref.Role == record.RoleBaseline {
			evals[i] = byTask[ref.Of]
		}
	}
	if numbered { // readers sort the ids, which must have one type
		for _, e := range byTask {
			e.id, _ = numberOf(fmt.Sprint(e.id))
		}
	}
	return evals
}

// numberOf returns the number that an id is.
func numberOf(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n, err == nil && strconv.Itoa(n) == id
}

// mostNotes limits the notes about trials.
const mostNotes = 200

// A writer collects the benchmark while it writes the trials.
type writer struct {
	create report.Create
	blobs  record.Blobs
	tasks  []record.TaskRef
	// baseline is the arm of the baseline.
	baseline string
	evals    []*eval // by task
	bench    benchmark
	leftOut  int // notes
}

func (w *writer) note(text string) {
	if len(w.bench.Notes) >= mostNotes {
		w.leftOut++
		return
	}
	w.bench.Notes = append(w.bench.Notes, text)
}

// trial writes the folder of a trial.
func (w *writer) trial(task int, t *record.Trial) error {
	e := w.evals[task]
	if e == nil {
		return nil
	}
	arm := withSkill
	if w.tasks[task].Role == record.RoleBaseline {
		arm = w.baseline
	}
	dir := path.Join(e.folder, arm, fmt.Sprintf("run-%d", t.TrialNum))
	m, err := w.outputs(dir, t)
	if err != nil {
		return err
	}
	tm := timingOf(t)
	if err := w.document(path.Join(dir, "timing.json"), tm); err != nil {
		return err
	}
	if e.meta == nil {
		e.meta = &metadata{EvalID: e.id, EvalName: e.name, Assertions: []string{}}
	}
	e.meta.Prompt = cmp.Or(e.meta.Prompt, t.Prompt)
	if !t.Verdict.Counted() {
		w.note(fmt.Sprintf("%s is not graded: %s", dir, reasonOf(t)))
		return nil
	}
	g := gradingOf(expectationsOf(t), m, tm)
	if arm == withSkill || len(e.meta.Assertions) == 0 {
		e.meta.Assertions = textsOf(g.Expectations)
	}
	w.bench.Runs = append(w.bench.Runs, benchmarkRun{
		EvalID: e.id, EvalName: e.name, Configuration: arm, RunNumber: t.TrialNum, Expectations: g.Expectations, Notes: []string{},
		Result: result{
			PassRate: g.Summary.PassRate, Passed: g.Summary.Passed, Failed: g.Summary.Failed, Total: g.Summary.Total,
			Seconds: tm.TotalSeconds, Tokens: tm.TotalTokens, ToolCalls: m.TotalToolCalls, Errors: m.Errors,
		},
	})
	return w.document(path.Join(dir, "grading.json"), g)
}

func reasonOf(t *record.Trial) string {
	if t.Error == "" {
		return string(t.Verdict)
	}
	return string(t.Verdict) + ": " + t.Error
}

func textsOf(list []expectation) []string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = e.Text
	}
	return texts
}

// finish writes the files about several trials.
func (w *writer) finish() error {
	for i, e := range w.evals {
		if e == nil || e.meta == nil || w.tasks[i].Role != record.RoleTask {
			continue
		}
		if err := w.document(path.Join(e.folder, "eval_metadata.json"), e.meta); err != nil {
			return err
		}
	}
	b := &w.bench
	slices.SortStableFunc(b.Runs, func(a, b benchmarkRun) int { return compareArms(a.Configuration, b.Configuration) })
	b.Metadata.EvalsRun = idsOf(b.Runs)
	b.summarize()
	if w.leftOut > 0 {
		b.Notes = append(b.Notes, fmt.Sprintf("%d more notes are left out", w.leftOut))
	}
	if b.Runs == nil {
		b.Runs = []benchmarkRun{}
	}
	if b.Notes == nil {
		b.Notes = []string{}
	}
	if err := w.document("benchmark.json", b); err != nil {
		return err
	}
	return w.create("benchmark.md", b.markdown)
}

// idsOf returns the sorted ids of the evals with runs. All are numbers or all are texts.
func idsOf(runs []benchmarkRun) []any {
	ids := []any{}
	for i := range runs {
		if !slices.Contains(ids, runs[i].EvalID) {
			ids = append(ids, runs[i].EvalID)
		}
	}
	slices.SortFunc(ids, func(a, b any) int {
		x, numbers := a.(int)
		if y, ok := b.(int); numbers && ok {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return ids
}

// document writes a JSON document.
func (w *writer) document(name string, v any) error {
	return w.create(name, func(out io.Writer) error { return report.WriteDocument(out, v) })
}

// timingOf returns the time and the tokens of the agent, as far as they are known.
func timingOf(t *record.Trial) timing {
	var tm timing
	if ms := cmp.Or(t.ExecutorMS, t.DurationMS); !t.Untimed && (ms > 0 || !t.StartedAt.IsZero()) {
		seconds := float64(ms) / 1000
		tm.DurationMS, tm.TotalSeconds, tm.ExecutorSeconds = &ms, &seconds, &seconds
	}
	if t.Usage != nil && t.Usage.Total() > 0 {
		tokens := t.Usage.Total()
		tm.TotalTokens = &tokens
	}
	var ms int64
	for i := range t.Graders {
		ms += t.Graders[i].DurationMS
	}
	if len(t.Graders) > 0 {
		seconds := float64(ms) / 1000
		tm.GraderSeconds = &seconds
	}
	return tm
}
