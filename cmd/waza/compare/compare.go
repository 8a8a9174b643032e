// Package compare implements `waza compare`, which reports the changes between runs and checks
// policies. Call [Command].
package compare

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/cmd/waza/terminal"
	"waza/eval/files"
	"waza/runner/baselines"
	"waza/runner/catalog"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/annotations"
)

// The values of --fail-on.
const (
	failOnRegression = "regression"
	failOnDrop       = "drop"
)

// The values of --format.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatJSON     = "json"
	formatActions  = "github-actions"
	// formatTable is microsoft/waza's name of text.
	formatTable = "table"
)

// FailOn returns the values of --fail-on.
func FailOn() []string { return []string{failOnRegression, failOnDrop} }

// Formats returns the values of --format.
func Formats() []string { return []string{formatText, formatMarkdown, formatJSON, formatActions} }

// Options connects the command to the recorded runs and its outputs.
type Options struct {
	state.Reader
}

const description = `The first run is the reference. waza compares each further run with it, task by task. A
task improved or regressed if an exact test shows it. If nothing changed, at most 1 in 20
commands calls any task changed, however many runs it compares (--confidence). A task is unchanged if the test
rules out a difference beyond the margin. It shows no difference if both runs agree but could
still differ by more. Otherwise it is undecided, and the table estimates how many more
trials would decide. Trials with errors are ignored, because they are not failures. Tasks
with trials that wait for review are not compared.

waza answers two questions about all tasks together. On these tasks: did anything change on
exactly this suite? On tasks like these: would the next tasks of this kind change, too,
although some get better and others worse? The verdict answers the second, or the first if
there are too few tasks for the second, or with --about these-tasks. If nothing changed, at
most 1 in 20 commands has a verdict of better or worse. Each further comparison with the
same baseline needs stronger evidence, so that this holds for all of them together.

RUN is an id or a prefix of one, latest, or latest~1 for the previous run of the same
suite. "latest~1 latest", the default, compares each suite of this project with its own
previous run, and corrects for all of them. FILE is the output of waza run --output, or a
results.json of microsoft/waza. For a single run with a matrix, each cell is compared
with the first cell. A single run without one is compared with the previous run.

--fail-on uses these tests and the question of the verdict. If nothing changed, it fails in
at most 1 in 20 commands. With up to three trials, no test of a single task can show
even that everything fails now. Therefore a task that passed all trials of the reference
and none of the run fails, too. That is a rule and not a significance result: with one
trial each, chance causes it in up to 25 % of comparisons of a task, with five in 0.1 %.
Suites of many flaky tasks with one trial each therefore fail often without a change. For
several runs, and for cells, waza only warns. --on-collapsed-tasks changes both.

Policies compare plain numbers, without a test:
--max-regression-pct 5 fails if the share of passed tasks fell by more than 5 percentage
points. With few trials, chance alone can cause that, and a smaller real change passes.
Policies suit tasks that must always pass; --fail-on suits agents that vary. You can give
both. With any policy, --on-removed-tasks is warn unless given.

Examples:
  waza compare latest~1 latest
  waza compare baseline.jsonl latest --fail-on regression
  waza compare main-run branch-run --format markdown
  waza compare old.json new.json --max-regression-pct 0 --golden-must-pass

Exit codes:
  0    compared, without a finding of --fail-on or a policy
  1    a finding of --fail-on, or a broken policy
  2    wrong usage: no such run, or no task in common
  3    with --fail-on, no finding, but some tasks could not be compared because of
       errors or missing reviews, or a run passed nothing, in too few trials to
       decide; or with --max-regression-pct, no task of a run passed or failed;
       or a run could not be read, or its record is damaged or cannot be verified
  125  with --bisect, in place of 2 and 3`

// Command returns waza compare.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "compare", Category: help.Runs,
		Usage:       "report improvements and regressions between runs, apart from chance",
		ArgsUsage:   "[RUN|FILE…]",
		Description: description,
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name:        "fail-on",
				Usage:       "exit with 1 for `WHAT`: regression, of a task or of all together, or drop, which can be chance",
				DefaultText: "nothing",
			},
			&cli.Float64Flag{
				Name:        "max-regression-pct",
				Usage:       "policy: the share of passed tasks must not fall by more than `POINTS` percentage points",
				DefaultText: "no limit",
			},
			&cli.BoolFlag{Name: "golden-must-pass", Usage: "policy: each task that the suite calls golden must pass"},
			&cli.StringFlag{
				Name:        "on-new-tasks",
				Usage:       "policy: `WHAT` to do about tasks that only the further run has: allow, warn or fail",
				DefaultText: "allow",
			},
			&cli.StringFlag{
				Name:        "on-removed-tasks",
				Usage:       "policy: `WHAT` to do about tasks that only the reference has: allow, warn or fail",
				DefaultText: "allow, with another policy warn",
			},
			&cli.StringFlag{
				Name: "on-collapsed-tasks",
				Usage: "with --fail-on, `WHAT` to do about tasks that passed all trials of the reference and none of " +
					"the run, too few for a test: allow, warn or fail",
				DefaultText: "fail, for several runs or cells warn",
			},
			&cli.StringSliceFlag{
				Name: "task", Aliases: []string{"t"}, Usage: "only tasks whose id or name matches `GLOB`; repeatable",
				DefaultText: "all",
			},
			&cli.StringFlag{
				Name:        "about",
				Usage:       "`QUESTION` of the verdict and of --fail-on: these-tasks or tasks-like-these",
				DefaultText: "tasks-like-these, with too few tasks these-tasks",
			},
			&cli.Float64Flag{
				Name:        "confidence",
				Usage:       "report a task as improved or regressed by chance in at most 1 - `SHARE` of comparisons",
				DefaultText: "0.95",
			},
			&cli.Float64Flag{Name: "margin", Usage: "report a task as unchanged if it differs by less than `SHARE`", DefaultText: "0.1"},
			&cli.StringFlag{Name: "suite", Usage: "in files with several results, use the result of the suite `NAME`", DefaultText: "the only one"},
			&cli.StringFlag{
				Name: "format", Aliases: []string{"f"},
				Usage: "print `FORMAT`: text, markdown, json, or github-actions for annotations and the summary of the step",
				Value: formatText, DefaultText: formatText,
			},
			&cli.BoolFlag{Name: "accept-damaged", Usage: "also compare runs whose record is damaged, without its lost parts, or cannot be verified"},
			exit.BisectFlag(),
			flags.JSON("print the comparison as JSON, the same as --format json"),
		},
		Action: o.run,
	}
}

func (o Options) run(c *cli.Context) error {
	options, err := optionsOf(c)
	if err != nil {
		return err
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	suites, single, err := o.suites(rn, c.Args().Slice(), c.String("suite"))
	if err != nil {
		return err
	}
	options.Ledger = baselines.In(rn.Catalog().StateDir())
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	result, err := compare.CompareSuites(ctx, suites, options)
	var damaged *compare.DamagedError
	switch {
	case err != nil && ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted"), "")
	case errors.Is(err, compare.ErrNothingCompared):
		return exit.Usagef("waza matches tasks by their ids", "%w", err)
	case errors.As(err, &damaged):
		return exit.New(exit.Error, err, "--accept-damaged compares it nevertheless")
	case err != nil:
		return err
	}
	result.Single = single
	for i := range result.Runs {
		output.WarnDamage(o.Stderr, result.Runs[i].Name, result.Runs[i].Damage)
	}
	if err := o.print(c, result); err != nil {
		return err
	}
	return exit.With(code(result, c.String("fail-on")))
}

func (o Options) print(c *cli.Context, result *compare.Comparison) error {
	format := c.String("format")
	if c.Bool("json") {
		format = formatJSON
	}
	switch format {
	case formatJSON:
		return o.Stdout.JSON(result)
	case formatMarkdown:
		return report.ComparisonMarkdown(o.Stdout, result)
	case formatActions:
		if err := annotations.Write(o.Stdout, result, c.String("fail-on") != ""); err != nil {
			return err
		}
		return summarize(os.Getenv("GITHUB_STEP_SUMMARY"), result)
	}
	return report.Comparison(o.Stdout, result, terminal.Options(o.Stdout))
}

// summarize appends the comparison to the summary of a step. It does nothing if path is empty.
func summarize(path string, result *compare.Comparison) error {
	if path == "" {
		return nil
	}
	f, err := files.OpenToAppend(path)
	if err != nil {
		return fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err)
	}
	err = report.ComparisonMarkdown(f, result)
	if _, werr := io.WriteString(f, "\n"); err == nil {
		err = werr
	}
	return cmp.Or(err, f.Close())
}

func optionsOf(c *cli.Context) (o compare.Options, err error) {
	if c.String("format") != formatTable {
		if err := flags.OneOf("format", c.String("format"), Formats()...); err != nil {
			return o, err
		}
	}
	if c.IsSet("fail-on") {
		if err := flags.OneOf("fail-on", c.String("fail-on"), FailOn()...); err != nil {
			return o, err
		}
	}
	if c.Bool("bisect") && !c.IsSet("fail-on") {
		return o, exit.Usagef("for example --fail-on regression", "--bisect requires --fail-on, which finds bad commits")
	}
	about, err := aboutOf(c)
	if err != nil {
		return o, err
	}
	o = compare.Options{
		About:      about,
		Confidence: c.Float64("confidence"), Margin: c.Float64("margin"), Tasks: c.StringSlice("task"),
		AcceptDamaged: c.Bool("accept-damaged"),
	}
	if c.IsSet("confidence") && !(o.Confidence >= 0.5 && o.Confidence <= 0.999) {
		return o, exit.Usagef("0.95 is usual", "--confidence must be between 0.5 and 0.999, got %g", o.Confidence)
	}
	if c.IsSet("margin") && !(o.Margin > 0 && o.Margin < 1) {
		return o, exit.Usagef("0.1 is ten points of pass rate", "--margin must be between 0 and 1, got %g", o.Margin)
	}
	if c.IsSet("on-collapsed-tasks") {
		if err := flags.OneOf("on-collapsed-tasks", c.String("on-collapsed-tasks"), compare.OnTasksNames()...); err != nil {
			return o, err
		}
		o.OnCollapsedTasks = compare.OnTasks(c.String("on-collapsed-tasks"))
	}
	o.Policies, err = policiesOf(c)
	return o, err
}

// About returns the values of --about.
func About() []string {
	var names []string
	for _, q := range record.Questions() {
		names = append(names, strings.ReplaceAll(string(q), "_", "-"))
	}
	return names
}

// aboutOf returns the question of the verdict; empty if the number of tasks decides.
func aboutOf(c *cli.Context) (record.Question, error) {
	if !c.IsSet("about") {
		return "", nil
	}
	if err := flags.OneOf("about", c.String("about"), About()...); err != nil {
		return "", err
	}
	return record.Question(strings.ReplaceAll(c.String("about"), "-", "_")), nil
}

// policiesOf returns the requested policies, or nil.
func policiesOf(c *cli.Context) (*compare.Policies, error) {
	p := &compare.Policies{GoldenMustPass: c.Bool("golden-must-pass"), OnNewTasks: compare.OnTasksAllow, OnRemovedTasks: compare.OnTasksWarn}
	asked := p.GoldenMustPass
	if c.IsSet("max-regression-pct") {
		most := c.Float64("max-regression-pct")
		if !(most >= 0 && most <= 100) || math.IsNaN(most) {
			return nil, exit.Usagef("0 allows no drop at all", "--max-regression-pct must be between 0 and 100, got %g", most)
		}
		p.MaxRegressionPct, asked = &most, true
	}
	for name, on := range map[string]*compare.OnTasks{"on-new-tasks": &p.OnNewTasks, "on-removed-tasks": &p.OnRemovedTasks} {
		if !c.IsSet(name) {
			continue
		}
		if err := flags.OneOf(name, c.String(name), compare.OnTasksNames()...); err != nil {
			return nil, err
		}
		*on, asked = compare.OnTasks(c.String(name)), true
	}
	if !asked {
		return nil, nil
	}
	return p, nil
}

// suites turns the arguments into the sources of a comparison, by suite, and returns the suites
// with too few runs. A single run is compared by the cells of its matrix, or else with its
// predecessor, and a single file with the latest run. If all arguments are the latest run or
// those before it, they mean the runs of each suite of the project.
func (o Options) suites(rn *state.Opened, args []string, suite string) (suites [][]compare.Source, single []record.SuiteRef, err error) {
	switch len(args) {
	case 0:
		args = []string{catalog.LatestRun}
		fallthrough
	case 1:
		if flags.IsFile(args[0]) || namesFile(args[0]) {
			args = []string{args[0], catalog.LatestRun}
			break
		}
		h, err := rn.Find(args[0])
		if err != nil {
			return nil, nil, err
		}
		if cells := compare.FromCells(h); len(cells) > 1 {
			return [][]compare.Source{cells}, nil, nil
		}
		if args[0] == catalog.LatestRun {
			args = []string{catalog.LatestRun + "~1", catalog.LatestRun}
			break
		}
		args = []string{h.ID() + "~1", h.ID()}
	}
	if suites, single, err = latest(rn, args); err != nil || len(suites) > 0 {
		return suites, single, err
	}
	var sources []compare.Source
	for _, arg := range args {
		s, err := o.source(rn, arg, suite)
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, s)
	}
	return [][]compare.Source{sources}, nil, nil
}

// latest returns the runs of each suite of the project that the arguments mean, if each of them
// is the latest run or one before it, and the suites that have fewer runs.
func latest(rn *state.Opened, args []string) (suites [][]compare.Source, single []record.SuiteRef, err error) {
	var back []int
	for _, arg := range args {
		n, ok := catalog.LatestBack(arg)
		if !ok || flags.IsFile(arg) {
			return nil, nil, nil
		}
		back = append(back, n)
	}
	most := slices.Max(back)
	found, err := rn.Catalog().Suites(".", most+1)
	if err != nil {
		return nil, nil, err
	}
	for _, runs := range found {
		if len(runs) <= most {
			single = append(single, runs[0].Record().Suite)
			continue
		}
		var sources []compare.Source
		for _, n := range back {
			sources = append(sources, compare.FromRun(runs[n]))
		}
		suites = append(suites, sources)
	}
	return suites, single, nil
}

func (o Options) source(rn *state.Opened, arg, suite string) (compare.Source, error) {
	if !flags.IsFile(arg) && !namesFile(arg) {
		h, err := rn.Find(arg)
		if err != nil {
			return nil, err
		}
		return compare.FromRun(h), nil
	}
	s, err := compare.FromFile(arg, suite)
	var bad *compare.ResultFileError
	switch {
	case errors.As(err, &bad) && bad.Hint != "":
		return nil, exit.Usagef(bad.Hint, "%w", err)
	case errors.As(err, &bad) && len(bad.Suites) > 0:
		return nil, exit.Usagef("select one with --suite NAME", "%w", err)
	case err != nil:
		return nil, exit.Usagef("waza run --output FILE writes such a file", "%w", err)
	}
	return s, nil
}

// namesFile reports whether an argument has the form of a file name. The file may not exist.
func namesFile(arg string) bool {
	return strings.ContainsRune(arg, filepath.Separator) || strings.HasPrefix(filepath.Ext(arg), ".json")
}

// code returns the exit code that --fail-on and policies require. A finding counts even if other
// tasks could not be compared.
func code(c *compare.Comparison, failOn string) int {
	code := exit.Passed
	for i := range c.Comparisons {
		x := &c.Comparisons[i]
		if x.Policies != nil && len(x.Policies.Failures) > 0 {
			return exit.Failed
		}
		if x.Policies != nil && x.Policies.Unmeasured != "" {
			code = exit.Error
		}
		switch {
		case failOn == "":
		case x.ShowsRegression(), failOn == failOnDrop && x.Dropped() > 0:
			return exit.Failed
		case c.OnCollapsedTasks == compare.OnTasksFail && len(x.Collapsed()) > 0:
			return exit.Failed
		case x.Partial() || x.NonePassed():
			code = exit.Error
		}
	}
	return code
}
