package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/terminal"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/report"
)

// What --fail-on may be.
const (
	failOnRegression = "regression"
	failOnDrop       = "drop"
)

func compareCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "compare", Category: help.Runs,
		Usage:     "report what became better or worse between runs, and what is chance",
		ArgsUsage: "[RUN|FILE…]",
		Description: `The first run is the reference; each further run is compared with it, task by
task. A task improved or regressed if an exact test shows it: if nothing changed, at
most 1 in 20 comparisons calls any task so (--confidence). A task is unchanged if a
difference beyond the margin is ruled out, and shows no difference if both runs agree
but could still differ by more. Otherwise it is undecided, and the table says how many
more trials would decide. Trials in error are left out, since they are no failures. A
task with trials that wait for a person's score is not compared.

RUN is an id or the beginning of one, latest, or latest~1 for the one before it of
the same suite. FILE is what waza run --output wrote. Of one run alone, its matrix
is compared, each cell with the first, or the run with the one before it; without
any, the newest is.

Examples:
  waza compare latest~1 latest
  waza compare baseline.jsonl latest --fail-on regression
  waza compare main-run branch-run --format markdown

Exit codes:
  0    compared; with --fail-on, nothing of the kind was seen
  1    what --fail-on names was seen
  2    wrong usage: no such run, or no task in common
  3    with --fail-on, some task could not be compared because of errors or missing
       reviews, and in the others nothing was seen; or a run could not be read
  125  with --bisect, in place of 2 and 3`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fail-on", Usage: "exit with 1 where `WHAT` is seen: regression, of some task or of all together, or drop, which may be chance", DefaultText: "nothing"},
			&cli.StringSliceFlag{Name: "task", Aliases: []string{"t"}, Usage: "only tasks whose id or name matches `GLOB`; repeatable", DefaultText: "all"},
			&cli.Float64Flag{Name: "confidence", Usage: "call a task improved or regressed by chance in at most 1 - `SHARE` of comparisons", DefaultText: "0.95"},
			&cli.Float64Flag{Name: "margin", Usage: "call a task unchanged if it differs by less than `SHARE`", DefaultText: "0.1"},
			&cli.StringFlag{Name: "suite", Usage: "of files with several results, take that of the suite `NAME`", DefaultText: "the only one"},
			&cli.StringFlag{Name: "format", Usage: "print `FORMAT`: text or markdown", Value: "text", DefaultText: "text"},
			bisectFlag(),
			flags.JSON("print the comparison as JSON"),
		},
		Action: e.do(compareRuns),
	}
}

func compareRuns(e *env, c *cli.Context) error {
	o, err := compareOptionsOf(c)
	if err != nil {
		return err
	}
	rn, err := e.newRunner()
	if err != nil {
		return err
	}
	sources, err := compareSources(rn, c.Args().Slice(), c.String("suite"))
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	result, err := compare.Compare(ctx, sources, o)
	switch {
	case err != nil && ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted"), "")
	case errors.Is(err, compare.ErrNothingCompared):
		return exit.Usagef("tasks are matched by their ids", "%w", err)
	case err != nil:
		return err
	}
	switch {
	case c.Bool("json"):
		err = e.stdout.JSON(result)
	case c.String("format") == "markdown":
		err = report.ComparisonMarkdown(e.stdout, result)
	default:
		err = report.Comparison(e.stdout, result, terminal.Options(e.stdout))
	}
	if err != nil {
		return err
	}
	return exit.With(compareCode(result, c.String("fail-on")))
}

func compareOptionsOf(c *cli.Context) (o compare.Options, err error) {
	if err := flags.OneOf("format", c.String("format"), "text", "markdown"); err != nil {
		return o, err
	}
	if c.IsSet("fail-on") {
		if err := flags.OneOf("fail-on", c.String("fail-on"), failOnRegression, failOnDrop); err != nil {
			return o, err
		}
	}
	if c.Bool("bisect") && !c.IsSet("fail-on") {
		return o, exit.Usagef("--fail-on regression, for example", "--bisect needs --fail-on: otherwise nothing is bad")
	}
	o = compare.Options{Confidence: c.Float64("confidence"), Margin: c.Float64("margin"), Tasks: c.StringSlice("task")}
	if c.IsSet("confidence") && !(o.Confidence >= 0.5 && o.Confidence <= 0.999) {
		return o, exit.Usagef("0.95 is usual", "--confidence: %g is not between 0.5 and 0.999", o.Confidence)
	}
	if c.IsSet("margin") && !(o.Margin > 0 && o.Margin < 1) {
		return o, exit.Usagef("0.1 is ten points of pass rate", "--margin: %g is not between 0 and 1", o.Margin)
	}
	return o, nil
}

// compareSources turns the arguments into what is compared. One alone is compared
// with what goes before it.
func compareSources(rn *runner.Runner, args []string, suite string) ([]compare.Source, error) {
	switch len(args) {
	case 0:
		args = []string{catalog.LatestRun}
		fallthrough
	case 1:
		if flags.IsFile(args[0]) || namesFile(args[0]) {
			args = []string{args[0], catalog.LatestRun}
			break
		}
		h, err := findRun(rn, args[0])
		if err != nil {
			return nil, err
		}
		if cells := compare.FromCells(h); len(cells) > 1 {
			return cells, nil
		}
		args = []string{h.ID() + "~1", h.ID()}
	}
	var sources []compare.Source
	for _, arg := range args {
		s, err := compareSource(rn, arg, suite)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

func compareSource(rn *runner.Runner, arg, suite string) (compare.Source, error) {
	if !flags.IsFile(arg) && !namesFile(arg) {
		h, err := findRun(rn, arg)
		if err != nil {
			return nil, err
		}
		return compare.FromRun(h), nil
	}
	s, err := compare.FromFile(arg, suite)
	var bad *compare.ResultFileError
	switch {
	case errors.As(err, &bad) && len(bad.Suites) > 0:
		return nil, exit.Usagef("--suite NAME says which", "%w", err)
	case err != nil:
		return nil, exit.Usagef("waza run --output FILE writes one", "%w", err)
	}
	return s, nil
}

// namesFile reports what can only be meant for a file, be there one or not.
func namesFile(arg string) bool {
	return strings.ContainsRune(arg, filepath.Separator) || strings.HasPrefix(filepath.Ext(arg), ".json")
}

// compareCode is the code that --fail-on asks for. What was shown counts, whatever
// could not be compared beside it.
func compareCode(c *compare.Comparison, failOn string) int {
	code := exit.Passed
	for i := range c.Comparisons {
		x := &c.Comparisons[i]
		switch {
		case failOn == "":
		case x.Regressed > 0 || x.Outcome == compare.OutcomeWorse, failOn == failOnDrop && x.Dropped() > 0:
			return exit.Failed
		case x.Partial():
			code = exit.Error
		}
	}
	return code
}

// findRun finds a run as [catalog.Catalog.Find] does.
func findRun(rn *runner.Runner, ref string) (record.Handle, error) {
	h, err := rn.Catalog().Find(ref)
	if !errors.Is(err, record.ErrRunNotFound) || ref != catalog.LatestRun {
		return h, err
	}
	if infos, lerr := rn.Catalog().List(1); lerr == nil && len(infos) == 0 {
		return nil, exit.Usagef("waza run SUITE makes one", "no runs are recorded")
	}
	return nil, err
}
