package plan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/executor/command"
	"waza/runner/internal/checkout"
	"waza/runner/provider"
	"waza/runner/record"
)

// mostNamed is the most cells that an error lists.
const mostNamed = 10

// leastBatch is the least number of pairs that a run chooses at once, if it has that many tasks.
const leastBatch = 8

// ask returns the suite and the request for a run that decides a question, and both unchanged for
// other runs. All pairs of a task have to be possible, and settings that end other runs early do
// not apply. The error is a [*record.QuestionError].
func ask(suite *eval.Suite, req record.Request) (*eval.Suite, record.Request, error) {
	asked := req.Decide
	if asked == nil && suite.Config.Decide.BetterBy > 0 && !narrows(&req) {
		asked = questionOf(suite)
	}
	if asked == nil {
		return suite, req, nil
	}
	q := *asked
	if q.Risk == 0 {
		q.Risk = record.DefaultRisk
	}
	if q.Pairs == 0 {
		q.Pairs = record.DecideTrials
	}
	if req.Trials > 0 {
		q.Pairs = req.Trials
	}
	if err := checkQuestion(suite, &req, &q); err != nil {
		return nil, req, err
	}
	s := *suite
	c := &s.Config
	c.FailFast, c.Stopping.Confidence, s.Baseline = false, 0, q.Baseline()
	if q.MaxCost != nil && *q.MaxCost > 0 && (c.MaxCost == 0 || *q.MaxCost < c.MaxCost) {
		c.MaxCost = *q.MaxCost
	}
	req.Decide, req.Trials, req.FailFast, req.Stopping, req.Cache = &q, q.Pairs, false, nil, !q.Fresh
	if req.Baseline = q.Baseline(); req.Baseline && q.A != record.SideNone && (req.Against == nil || req.Against.Name != q.A) {
		req.Against = &record.Revision{Name: q.A}
	}
	return &s, req, nil
}

// narrows reports whether a request wants something else of a suite than its question: one trial, one
// side, or trials without verdicts.
func narrows(req *record.Request) bool {
	return req.Trial > 0 || req.SkipGraders || req.UpdateSnapshots || req.NoSkills || req.Model != "" || len(req.Models) > 0
}

// checkDecide finds out whether runs can decide the question of config.decide, as [eval.Vocabulary] wants it. It
// starts no program, so that it accepts missing revisions.
func (r *Planner) checkDecide(s *eval.Suite) decode.Diagnostics {
	var question *record.QuestionError
	suite, req, err := ask(s, record.Request{})
	if errors.As(err, &question) {
		return decode.Diagnostics{diagnose(s, question)}
	}
	if err != nil || req.Decide == nil {
		return nil
	}
	kind, err := r.executorKind(suite, req)
	if err != nil {
		return nil // other findings say so
	}
	d := &draft{Plan: &Plan{Suite: suite, executors: r.executors, graders: r.graders}, req: req, kind: kind}
	d.configure()
	if d.planCells() != nil {
		return nil
	}
	if errors.As(d.chooseSides(), &question) {
		return decode.Diagnostics{diagnose(s, question)}
	}
	return d.unpriced()
}

// unpriced finds models of sides whose costs nobody knows, although config.max_cost limits them.
func (d *draft) unpriced() (found decode.Diagnostics) {
	if d.Suite.Config.MaxCost <= 0 {
		return nil
	}
	for i, c := range d.cells {
		model := c.Settings.Model
		if _, priced := provider.Prices(d.Suite.Config.Prices).Find(model); priced || model == "" {
			continue
		}
		at := decode.At("config", "decide", "between", i)
		switch {
		case c.Can().Metered:
			found = append(found, d.Suite.Diagnose(at, decode.Error, decode.CodeInvalidValue,
				fmt.Sprintf("config.max_cost requires a price for model %q; add it to config.prices", sideName(model))))
		case c.Executor.Name == command.Kind.Name:
			found = append(found, d.Suite.Diagnose(at, decode.Warning, decode.CodeInvalidValue, fmt.Sprintf(
				"config.max_cost limits only costs that the program reports itself, because model %q has no price; add it to config.prices", sideName(model))))
		}
	}
	return found
}

// diagnose returns the finding about the question of config.decide.
func diagnose(s *eval.Suite, e *record.QuestionError) decode.Diagnostic {
	at := decode.At("config", "decide")
	switch e.Key {
	case "a", "b":
		if at = append(at, "between"); len(s.Config.Decide.Between) == 2 {
			at = append(at, map[string]int{"a": 0, "b": 1}[e.Key])
		}
	case "better_by", "risk":
		at = append(at, e.Key)
	}
	return s.Diagnose(at, decode.Error, decode.CodeInvalidValue, "config.decide: "+e.Reason)
}

// missingRevision returns the error of [draft.planTasks], with the side of the question that names a missing
// revision.
func (d *draft) missingRevision(err error) error {
	if revision := (*record.RevisionError)(nil); d.req.Decide != nil && errors.As(err, &revision) {
		return &record.QuestionError{Key: "a", Reason: revision.Error()}
	}
	return err
}

// questionOf returns the question of config.decide.
func questionOf(s *eval.Suite) *record.DecideRequest {
	d := &s.Config.Decide
	q := &record.DecideRequest{A: record.SideNone, B: record.SideFiles, BetterBy: d.BetterBy / 100, Risk: d.Risk}
	if s.Config.TrialsPerTask > 1 {
		q.Pairs = s.Config.TrialsPerTask
	}
	if len(d.Between) == 2 {
		q.A, q.B = d.Between[0], d.Between[1]
	}
	return q
}

// checkQuestion returns an error for a question that no run of the suite can decide: a
// [*record.QuestionError].
func checkQuestion(s *eval.Suite, req *record.Request, q *record.DecideRequest) error {
	wrong := func(key, format string, args ...any) error {
		return &record.QuestionError{Key: key, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !(q.BetterBy > 0 && q.BetterBy <= 1):
		return wrong("better_by", "the gain must be more than 0 and at most 100 points, got %.12g", q.BetterBy*100)
	case !(q.Risk > 0 && q.Risk < 0.5):
		return wrong("risk", "the risk must be more than 0 and less than 50 %%, got %.12g %%", q.Risk*100)
	case q.MaxCost != nil && !(*q.MaxCost >= 0) || q.MaxTrials != nil && *q.MaxTrials < 0:
		return wrong("budget", "the budget must not be negative")
	case q.Seed < 0 || q.Seed > maxSeed:
		return wrong("seed", "the seed must be between 1 and %d, got %d", maxSeed, q.Seed)
	case q.A == "" || q.B == "":
		return wrong(map[bool]string{true: "a", false: "b"}[q.A == ""], "both sides must have a name")
	case q.A == q.B:
		return wrong("b", "both sides are %s; name two different ones", sideName(q.A))
	case q.A == record.SideFiles || q.B == record.SideNone:
		return wrong("a", "the sides are in the wrong order; the files as they are must be the second side (waza decide none .)")
	case q.A == record.SideNone && !q.Baseline():
		return wrong("b", "none, the agent without skills, can only be compared with the files as they are (waza decide none .)")
	case s.Kind != eval.ToolEval:
		return wrong("", "a suite of the kind %s has rules of its own for its cells; ask about a suite of the kind %s", s.Kind, eval.ToolEval)
	case req.Trial > 0:
		return wrong("", "a single trial decides nothing; omit the number of the trial")
	case req.SkipGraders:
		return wrong("", "trials without graders decide nothing; grade them")
	case req.UpdateSnapshots:
		return wrong("", "snapshots cannot be updated while their diffs decide; update them with waza run")
	case len(req.Models) > 0 && !q.Baseline():
		return wrong("", "%s", modelsGiven)
	case q.Baseline() && req.NoSkills:
		return wrong("b", "the second side needs its skills; omit no-skills")
	case q.Baseline() && !s.Baseline && skilled(s):
		return wrong("", "the sides are the agent without and with its skills, so the suite needs `baseline: true`; or name two other sides in between")
	case q.Baseline() && !(s.Baseline && skilled(s)):
		return wrong("", "no task has a skill, so both sides are the same; compare models or cells of the suite instead")
	case q.Baseline() && len(s.Hooks.BeforeTask)+len(s.Hooks.AfterTask) > 0:
		return wrong("", "before_task and after_task hooks of both sides would disturb each other; move them to before_run and after_run")
	}
	for _, t := range s.Tasks {
		for _, g := range t.Effective {
			if t.Enabled && g.Type == record.TypeHuman {
				return wrong("", "grader %q of task %s waits for a person, but each pair needs its result before the next ones are chosen; "+
					"let a judge score instead", g.Name, t.ID)
			}
		}
	}
	return nil
}

// modelsGiven refuses models beside sides.
const modelsGiven = "the question already names both sides; omit the model"

// skilled reports whether a task of the suite has a skill, or a file that defines the agent under test.
func skilled(s *eval.Suite) bool {
	return slices.ContainsFunc(s.Tasks, func(t *eval.Task) bool { return len(t.Skills)+len(agentFiles(t)) > 0 })
}

// sideName shortens the name of a side for messages.
func sideName(name string) string { return text.Clip(name, 80) }

// chooseSides keeps the two cells of a question. Names that are no cells of the suite are models.
func (d *draft) chooseSides() error {
	q := d.req.Decide
	if q == nil {
		return nil
	}
	if q.Baseline() {
		switch why := d.everywhere(func(c *Setup) string { return c.Baselines }); {
		case why != "":
			return &record.QuestionError{Reason: strings.TrimPrefix(why, "not measured: ") + ", so skills change nothing"}
		case len(d.cells) > 1:
			return &record.QuestionError{Reason: fmt.Sprintf("the suite has %d cells, and a question about skills needs one; choose a model", len(d.cells))}
		}
		return nil
	}
	known := d.cellNames()
	if !d.keepSides(q) && len(d.Suite.Variants) == 0 {
		if d.req.Model != "" {
			return &record.QuestionError{Reason: modelsGiven}
		}
		d.req.Model, d.req.Models = "", []string{q.A, q.B}
		d.judge, d.ownJudge = d.defaultJudge()
		d.configure()
		d.cells = nil
		if err := d.planCells(); err != nil {
			return err
		}
		d.keepSides(q)
	}
	if !slices.Equal(d.cellNames(), []string{q.A, q.B}) {
		all := known
		if n := len(known); n > mostNamed {
			known = append(slices.Clone(known[:mostNamed]), fmt.Sprintf("and %d more", n-mostNamed))
		}
		e := &record.QuestionError{Key: "a", Reason: fmt.Sprintf("the suite has no two cells %q and %q; its cells are: %s",
			sideName(q.A), sideName(q.B), strings.Join(known, "; "))}
		if slices.Contains(all, q.A) {
			e.Key = "b"
		}
		return e
	}
	if len(d.Suite.Variants) == 0 {
		d.Config.Model, d.Config.Models = "", []string{q.A, q.B}
	}
	return nil
}

// checkModels returns an error for a side that is no cell and no model of the suite, but names a
// commit. Every other name can be one of a model that the suite does not mention.
func (d *draft) checkModels(ctx context.Context) error {
	q := d.req.Decide
	if q == nil || q.Baseline() {
		return nil
	}
	known := slices.Concat(d.cellNames(), d.Config.Models, []string{d.Config.Model})
	for i, side := range []string{q.A, q.B} {
		if slices.Contains(known, side) {
			continue
		}
		if _, priced := d.Config.Prices[side]; priced {
			continue
		}
		if _, err := checkout.Resolve(ctx, d.Suite.Dir, side); err == nil {
			return &record.QuestionError{Key: []string{"a", "b"}[i], Reason: fmt.Sprintf("%s is a git revision, not a model of the suite; "+
				"compare it with the files as they are (waza decide %s .), or list it in config.models", side, side)}
		}
	}
	return nil
}

func (d *draft) cellNames() (names []string) {
	for _, c := range d.cells {
		if c.ref != nil {
			names = append(names, c.ref.Name)
		}
	}
	return names
}

// keepSides removes the cells that are no side of the question. It removes none if a side is missing.
func (d *draft) keepSides(q *record.DecideRequest) bool {
	at := func(name string) int {
		return slices.IndexFunc(d.cells, func(c *Setup) bool { return c.ref != nil && c.ref.Name == name })
	}
	a, b := at(q.A), at(q.B)
	if a < 0 || b < 0 {
		return false
	}
	d.cells = []*Setup{d.cells[a], d.cells[b]}
	return true
}

// maxSeed is the largest seed of an order: JSON numbers hold it exactly.
const maxSeed = 1 << 53

// seedOf returns the seed of a question that has none. The chance of a wrong verdict is one over random
// orders of the tasks, so that a constant seed would give some suites a wrong verdict far more often.
// The same question asked again about the trials that it reuses has the same order, because choosing
// among orders would be a choice among verdicts.
func (d *draft) seedOf(runs *catalog.Catalog) (int, error) {
	seed := 0
	if !d.req.Decide.Fresh {
		err := runs.Earlier("", func(h record.Handle) bool {
			rec := h.Record()
			if q := rec.Asked.Decide; q != nil && q.A == d.req.Decide.A && q.B == d.req.Decide.B && rec.Suite.Path == d.Suite.File {
				seed = q.Seed
			}
			return seed == 0
		})
		if err != nil {
			return 0, err
		}
	}
	if seed == 0 {
		seed = 1 + rand.IntN(maxSeed-1)
	}
	return seed, nil
}

// pairTasks completes the question when the tasks are planned. It looks for earlier answers in runs.
func (d *draft) pairTasks(runs *catalog.Catalog) (err error) {
	q := d.req.Decide
	if q == nil {
		return nil
	}
	sides := map[string][]string{} // of the tasks of the suite: the cells that do them
	pairs := 0
	for _, t := range d.Tasks {
		t.Paired, t.RecordedOnly = true, q.MaxTrials != nil && *q.MaxTrials == 0
		if t.Role != record.RoleTask {
			continue
		}
		pairs++
		if !q.Baseline() {
			sides[t.Task.ID] = append(sides[t.Task.ID], t.Cell.Name)
		}
	}
	for _, t := range d.Tasks {
		if cells := sides[t.Task.ID]; len(cells) == 1 {
			return &record.QuestionError{Reason: fmt.Sprintf("only %s does task %s; choose tasks that both sides do with --task", cells[0], t.Task.ID)}
		}
	}
	if !q.Baseline() {
		pairs /= 2
	}
	if q.Batch == 0 {
		q.Batch = min(max(leastBatch, (d.Config.ActualWorkers+1)/2), pairs)
	}
	if q.Seed == 0 {
		if q.Seed, err = d.seedOf(runs); err != nil {
			return err
		}
	}
	d.question = &record.DecideQuestion{
		A: q.A, B: q.B, BetterBy: q.BetterBy, Risk: q.Risk, Batch: q.Batch, Seed: q.Seed, MaxCost: q.MaxCost, MaxTrials: q.MaxTrials,
	}
	if q.Baseline() {
		d.question.A, d.question.B = "the agent "+d.against.Arm().String(), "the agent with skills"
		if d.against != nil {
			d.question.B += " as they are"
		}
	}
	return nil
}
