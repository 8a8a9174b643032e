package run

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/state"
	"waza/cmd/waza/suites"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/tally"
)

// DecideCommand returns waza decide.
func DecideCommand(o Options) *cli.Command {
	return &cli.Command{
		Name: "decide", Category: help.Suites,
		Usage:     "answer whether B is better than A with as few trials as possible",
		ArgsUsage: "A B [SUITE|DIR|SKILL]",
		Description: `Does B pass more trials than A? waza runs pairs of trials, the most informative tasks
first, and looks at the result after each batch. It ends with one of three answers:

  better       B is better than A
  not better   B is not better than A by as many points as --better-by
  undecided    the budget is spent; the answer says how much more would decide

A wrong answer has a chance of at most --risk, however often waza looks. The answer is
about the mean of exactly these tasks.

A and B are two models, or two cells of the suite's matrix; a git revision and . for the
skills then and as they are; none and . for the agent without and with skills; or two
recorded runs of a suite with different models. With --budget 0, waza runs nothing: two
recorded runs are compared by their trials, and other sides by trials that it can reuse.

Unchanged trials of earlier runs are reused, see waza run --cache. The same command with
a larger budget therefore continues where the last one ended. Trials that made you choose
B count in its favor; --no-cache leaves them out.

A trial in error is tried again as often as config.retry_errors says. A pair without a
result counts as the worst case. fail_fast, stopping and trigger tests do not apply.
waza runs resume continues an interrupted command with the same pairs.

Examples:
  waza decide claude-haiku-4-5 claude-sonnet-4-5 --better-by 5 --budget '$20'
  waza decide HEAD~1 . evals/demo --better-by 5 --budget '$20'
  waza decide none . code-explainer --better-by 10 --budget '200 trials'
  waza decide latest~1 latest --better-by 5 --budget 0

Exit codes:
  0    B is better
  1    B is not better by as many points as asked for
  2    wrong usage, an invalid suite, or a question that no run can decide
  3    undecided, or the harness could not do its work
  130  interrupted`,
		Flags:  decideFlags(),
		Action: o.decide,
	}
}

// asRun are the flags of waza run that waza decide has, too.
var asRun = []string{
	"task", "tag", "no-cache", "executor", "agent", "model", "judge-model", "judge-agent", "exact-tools", "workers", "timeout", "fleet",
	"sandbox", "context-dir", "pass-reward", "param", "fsync", "traces", "dashboard", "verbose", "json", "events", "output", "report",
}

func decideFlags() []cli.Flag {
	const question = "Question"
	list := []cli.Flag{
		&cli.Float64Flag{Name: "better-by", Category: question, Usage: "the least gain worth having, in `POINTS` of the pass rate; required", DefaultText: "none"},
		&cli.StringFlag{
			Name: "budget", Category: question, DefaultText: "none",
			Usage: "spend at most `BUDGET`: '$20', '200 trials', or 0 to run nothing; required",
		},
		&cli.StringFlag{
			Name: "risk", Category: question, Value: "5%", DefaultText: "5%",
			Usage: "give a wrong answer with a chance of at most `SHARE`, such as 5% or 0.05",
		},
		&cli.IntFlag{
			Name: "trials", Category: question, Usage: "run at most `N` pairs of trials of each task",
			DefaultText: strconv.Itoa(record.DecideTrials),
		},
		&cli.IntFlag{
			Name: "seed", Category: question, Usage: "choose tasks in the order of the seed `N`, from 1 on",
			DefaultText: "that of the newest run with the same sides, or a random one",
		},
	}
	for _, f := range runflags.Flags() {
		if slices.Contains(asRun, f.Names()[0]) {
			list = append(list, f)
		}
	}
	return list
}

func (o Options) decide(c *cli.Context) error {
	q, err := questionOf(c)
	if err != nil {
		return err
	}
	options, err := runflags.Parse(c)
	if err != nil {
		return err
	}
	options.Request.Trials, options.Request.Decide = 0, q
	rn, err := o.record(c)
	if err != nil {
		return err
	}
	defer rn.CloseExporters()
	a, b, err := recordedSides(rn, q)
	if err != nil {
		return err
	}
	given := c.Args().Slice()[2:]
	switch {
	case a == nil:
	case q.MaxTrials != nil && *q.MaxTrials == 0 && len(given) == 0:
		for _, name := range append(slices.Clone(asRun), "trials", "seed") {
			if c.IsSet(name) && name != "json" {
				return exit.Usagef("omit it", "--%s changes nothing about recorded trials, which --budget 0 uses", name)
			}
		}
		return o.decideRecorded(a, b, q, options.JSON)
	default:
		if q.A, q.B, err = modelsOfRuns(a.Record(), b.Record()); err != nil {
			return err
		}
		if len(given) == 0 {
			given = []string{a.Record().Suite.Path}
		}
	}
	if err := runflags.CheckExecutor(rn.Planner(), options.Request.Executor); err != nil {
		return err
	}
	paths, err := suites.ToRun(c.Context, o.Streams, given)
	if err != nil {
		return err
	}
	if len(paths) > 1 {
		return exit.Usagef("name one of them after the sides", "a question is about one suite, and there are %d", len(paths))
	}
	return o.inSession(c.Context, rn, options, func(s *session) int { return s.runAll(paths) })
}

// questionOf reads the question of the arguments and flags.
func questionOf(c *cli.Context) (*record.DecideRequest, error) {
	switch n := c.NArg(); {
	case n < 2:
		return nil, exit.Usagef("waza decide none . compares the agent without and with skills", "waza decide needs two sides, got %d", n)
	case n > 3:
		return nil, flags.TooMany(c, 3)
	case !c.IsSet("better-by"):
		return nil, exit.Usagef("--better-by 5 asks for 5 points of the pass rate", "--better-by is missing: the least gain worth having")
	case !c.IsSet("budget"):
		return nil, exit.Usagef("for example --budget '$20', or --budget '200 trials'", "--budget is missing: the most that the answer may cost")
	}
	q := &record.DecideRequest{A: c.Args().Get(0), B: c.Args().Get(1), BetterBy: c.Float64("better-by") / 100, Seed: c.Int("seed"), Fresh: c.Bool("no-cache")}
	if by := c.Float64("better-by"); !(by > 0 && by <= 100) {
		return nil, exit.Usagef("5 means 5 points of the pass rate", "--better-by must be more than 0 and at most 100 points, got %v", by)
	}
	var err error
	if q.Risk, err = shareOf(c.String("risk")); err != nil || !(q.Risk > 0 && q.Risk < 0.5) {
		return nil, exit.Usagef("5% is usual", "--risk must be more than 0 and less than 50%%, got %q", c.String("risk"))
	}
	if c.IsSet("trials") {
		if q.Pairs = c.Int("trials"); q.Pairs < 1 {
			return nil, exit.Usagef("omit the flag for the default", "--trials must be at least 1, got %d", q.Pairs)
		}
	}
	if c.IsSet("seed") && q.Seed < 1 {
		return nil, exit.Usagef("omit the flag for a random order", "--seed must be at least 1, got %d", q.Seed)
	}
	return q, budgetOf(c.String("budget"), q)
}

// shareOf reads a share: 5% or 0.05.
func shareOf(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		share /= 100
	}
	return share, err
}

// budgetForm matches an amount with its unit.
var budgetForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\$?) *([0-9]+(?:\.[0-9]+)?) *(\$|usd|trials?|)$`)
})

// budgetOf reads --budget: dollars, trials, or 0.
func budgetOf(text string, q *record.DecideRequest) error {
	wrong := exit.Usagef("quote it: the shell replaces $2 in --budget $20", "--budget must be an amount such as '$20', '200 trials' or 0, got %q", text)
	parts := budgetForm().FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if parts == nil {
		return wrong
	}
	amount, err := strconv.ParseFloat(parts[2], 64)
	dollars := parts[1] != "" || parts[3] == "$" || parts[3] == "usd"
	trials := strings.HasPrefix(parts[3], "trial")
	switch {
	case err != nil || parts[1] != "" && parts[3] != "" || math.IsInf(amount, 0):
		return wrong
	case amount == 0:
		q.MaxTrials = new(int)
	case dollars:
		q.MaxCost = &amount
	case trials && amount == math.Trunc(amount) && amount <= math.MaxInt32:
		q.MaxTrials = new(int(amount))
	default:
		return wrong
	}
	return nil
}

// recordedSides returns the recorded runs that both sides mean; nil if they mean something else.
func recordedSides(rn *state.Recording, q *record.DecideRequest) (a, b record.Handle, err error) {
	var runs []record.Handle
	for _, name := range []string{q.A, q.B} {
		_, latest := catalog.LatestBack(name)
		if !latest && (name == "" || name[0] < '0' || name[0] > '9') {
			continue
		}
		h, err := rn.Find(name)
		switch {
		case errors.Is(err, record.ErrRunNotFound) && !latest:
		case err != nil:
			return nil, nil, err
		default:
			runs = append(runs, h)
		}
	}
	switch len(runs) {
	case 0:
		return nil, nil, nil
	case 1:
		return nil, nil, exit.Usagef("name two runs, as in waza decide latest~1 latest",
			"only one of %s and %s is a recorded run", q.A, q.B)
	}
	return runs[0], runs[1], nil
}

// modelsOfRuns returns the models of two runs that differ in nothing else that a suite chooses.
func modelsOfRuns(a, b *record.Run) (modelA, modelB string, err error) {
	refuse := func(hint, format string, args ...any) (string, string, error) {
		return "", "", exit.Usagef(hint, "cannot run %s and %s again as two sides: "+format, append([]any{a.RunID, b.RunID}, args...)...)
	}
	const records = "--budget 0 compares their recorded trials"
	switch {
	case a.Imported != nil || b.Imported != nil:
		return refuse(records, "waza did not execute them")
	case a.Suite.Path != b.Suite.Path:
		return refuse(records, "they are runs of different suites")
	case a.Matrix() || b.Matrix():
		return refuse("name two cells, as in waza decide CELL CELL", "they have several cells")
	case a.Config.Executor != b.Config.Executor || a.Config.Agent != b.Config.Agent:
		return refuse("list both agents in config.matrix or config.cells, and name the cells", "they have different agents or executors")
	case a.Config.Model == "" || b.Config.Model == "" || a.Config.Model == b.Config.Model:
		return refuse("waza decide REVISION . compares the skills at a git revision with the files as they are",
			"they have the same model, and files that changed since are gone")
	}
	return a.Config.Model, b.Config.Model, nil
}

// sameTasks returns an error for two runs of different suites, with different tasks, or of one model with
// different graders.
func sameTasks(a, b *record.Run) error {
	if a.RunID == b.RunID {
		return exit.Usagef("waza runs lists the runs", "both sides are run %s", a.RunID)
	}
	if a.Suite.Path != b.Suite.Path {
		return exit.Usagef("waza compare shows what differs", "runs %s and %s are of different suites", a.RunID, b.RunID)
	}
	known := map[string]*record.TaskRef{}
	for i := range a.Tasks {
		known[a.Tasks[i].ID] = &a.Tasks[i]
	}
	shared := 0
	for i := range b.Tasks {
		t := &b.Tasks[i]
		if t.Role != record.RoleTask {
			continue
		}
		before := known[t.ID]
		if before == nil {
			return exit.Usagef("waza compare compares the tasks that both have", "only run %s has task %s", b.RunID, t.ID)
		}
		if shared++; compare.ChangedBetween(a, before, b, t) == compare.ChangedGraders {
			return exit.Usagef("waza grade grades a run with the present graders", "task %s has different graders in both runs", t.ID)
		}
	}
	for _, t := range a.Tasks {
		if t.Role == record.RoleTask {
			shared--
		}
	}
	if shared < 0 {
		return exit.Usagef("waza compare compares the tasks that both have", "run %s has %s that run %s does not have",
			a.RunID, text.Count(-shared, "task", "tasks"), b.RunID)
	}
	return nil
}

// decideRecorded answers the question with the trials of two runs.
func (o Options) decideRecorded(a, b record.Handle, q *record.DecideRequest, asJSON bool) error {
	if err := sameTasks(a.Record(), b.Record()); err != nil {
		return err
	}
	for _, h := range []record.Handle{a, b} {
		damage, err := h.Damage()
		if err != nil {
			return err
		}
		output.WarnDamage(o.Stderr, h.ID(), damage)
	}
	d, err := tally.DecideRecorded(a, b, q)
	if err != nil {
		return err
	}
	if asJSON {
		err = o.Stdout.JSON(map[string]any{"decision": d})
	} else {
		_, err = fmt.Fprintln(o.Stdout, report.Clean(d.Text))
	}
	if err != nil {
		return err
	}
	return exit.With(exit.OfRun(record.StatusCompleted, "", &record.Summary{Decision: d}))
}
