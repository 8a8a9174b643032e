package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/text"
	"waza/runner"
	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/report"
)

func gradeCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "grade", Category: help.Runs,
		Usage:     "score a recorded run with today's graders",
		ArgsUsage: "RUN",
		Description: `Nothing is executed: what the agent did is in the record, files it left included.
Graders, weights, thresholds and metrics are those of the suite as it is now, and
what comes out takes the place of what was recorded. A model is asked only where a
judge would be asked something else than before, or could not answer then. latest
means the newest run.

Ctrl-C ends it; what was graded until then stays.

Examples:
  waza grade latest                        after an edit of the suite
  waza grade RUN --suite strict/eval.yaml  by another suite with the same tasks

Exit codes: as of waza run, by how the run stands now.
` + exit.Codes,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "suite", Usage: "take the graders from the suite `FILE`", DefaultText: "the run's own"},
			&cli.BoolFlag{Name: "rejudge", Usage: "ask models also where they were asked the same before"},
			failOnFlag(""),
			flags.JSON("print what has changed as JSON"),
		},
		Action: e.do(gradeRun),
	}
}

// graded is what `waza grade --json` prints.
type graded struct {
	RunID        string             `json:"runId"`
	Status       record.Status      `json:"status"`
	Graded       int                `json:"graded"`
	Kept         int                `json:"kept"`
	Changed      []regrade.Change   `json:"changed"`
	TotalChanged int                `json:"totalChanged"`
	Summary      *record.Summary    `json:"summary"`
	Warnings     []string           `json:"warnings,omitempty"`
	Diagnostics  decode.Diagnostics `json:"diagnostics,omitempty"`
	// Error says why it ended before all was graded.
	Error string `json:"error,omitempty"`
}

func gradeRun(e *env, c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("waza runs lists the runs", "waza grade takes one run, not %d", c.NArg())
	}
	if err := checkFailOn(c); err != nil {
		return err
	}
	rn, err := e.newRunner()
	if err != nil {
		return err
	}
	h, err := findRun(rn, c.Args().First())
	if err != nil {
		return err
	}
	suite, err := suiteToGrade(e, rn, h.Record(), c.String("suite"))
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	g, err := rn.Amender().Grade(ctx, h.ID(), suite, regrade.GradeOptions{Rejudge: c.Bool("rejudge"), Progress: gradeProgress(e)})
	var ungradable *regrade.UngradableError
	if errors.As(err, &ungradable) {
		if perr := e.printDiagnostics(ungradable.Diagnostics); perr != nil {
			return perr
		}
		return invalidToGrade(suite.File, ungradable.Diagnostics)
	}
	if g == nil {
		return err
	}
	if terr := printGrading(e, h, g, err, c.Bool("json")); terr != nil {
		return terr
	}
	switch {
	case ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted; what was graded until then is recorded"), "")
	case err != nil:
		return exit.New(exit.Error, err, "what was graded until then is recorded; waza grade goes on from there")
	}
	return exit.With(failOn(c.String("fail-on"), exit.OfRun(g.Status, g.Error, g.Summary), g.Summary))
}

// suiteToGrade loads the suite for the executor, agent and fixtures of the run.
func suiteToGrade(e *env, rn *runner.Runner, rec *record.Run, path string) (*eval.Suite, error) {
	if path == "" {
		path = rec.Suite.Path
	}
	executor, agent := rec.Overrides()
	suite, ds, err := eval.Load(path, eval.Options{
		Vocabulary: rn.Planner().Vocabulary(), Executor: executor, Agent: agent, ContextDir: rec.Config.ContextDir,
	})
	var gone *discover.NotFoundError
	if errors.As(err, &gone) && path == rec.Suite.Path {
		return nil, exit.Usagef("--suite FILE says where the suite is now", "the suite of run %s is not there any more: %w", rec.RunID, err)
	}
	if err != nil {
		return nil, err
	}
	var worse decode.Diagnostics
	for _, d := range ds {
		if d.Severity != decode.Info {
			worse = append(worse, d)
		}
	}
	if err := e.printDiagnostics(worse); err != nil {
		return nil, err
	}
	if suite == nil || ds.HasErrors() {
		return nil, invalidToGrade(path, ds)
	}
	return suite, nil
}

func invalidToGrade(path string, ds decode.Diagnostics) error {
	return exit.Usagef("waza validate "+path+" tells all findings",
		"%s: the suite is invalid and nothing was graded: %s", path, report.DiagnosticsSummary(ds.Errors()))
}

// gradeProgress tells now and then how far it is, of what takes long.
func gradeProgress(e *env) func(done, total int) {
	told := e.now()
	return func(done, total int) {
		if now := e.now(); now.Sub(told) > 2*time.Second && done < total {
			told = now
			fmt.Fprintf(e.stderr, "graded %d of %d trials\n", done, total)
		}
	}
}

func printGrading(e *env, h record.Handle, g *regrade.Grading, why error, asJSON bool) error {
	if asJSON {
		out := graded{
			RunID: h.ID(), Status: g.Status, Graded: g.Graded, Kept: g.Kept, Changed: g.Changes, TotalChanged: g.Changed,
			Summary: g.Summary, Warnings: g.Warnings, Diagnostics: g.Diagnostics,
		}
		if out.Changed == nil {
			out.Changed = []regrade.Change{}
		}
		if why != nil {
			out.Error = why.Error()
		}
		return e.stdout.JSON(out)
	}
	if err := e.printDiagnostics(g.Diagnostics); err != nil {
		return err
	}
	for _, w := range g.Warnings {
		fmt.Fprintf(e.stderr, "waza: %s\n", output.Clean(w))
	}
	printChanges(e, g)
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	return rep.Write(e.stdout, terminal.Options(e.stdout))
}

// mostChanges bounds the changes that are printed one by one; --json has more.
const mostChanges = 50

func printChanges(e *env, g *regrade.Grading) {
	for i, c := range g.Changes {
		if i == mostChanges {
			fmt.Fprintf(e.stdout, "and %d more\n", g.Changed-i)
			break
		}
		score := ""
		if c.Score != nil {
			score = ", score " + figure.Score(*c.Score)
		}
		fmt.Fprintf(e.stdout, "%s, trial %d: %s -> %s%s\n", report.Clean(c.TaskID), c.Trial, c.Was, c.Verdict, score)
		for _, line := range firstLines(c.Feedback, 3) {
			fmt.Fprintf(e.stdout, "    | %s\n", report.Clean(line))
		}
	}
	kept := ""
	if g.Kept > 0 {
		kept = "; " + text.Count(g.Kept, "stays as it was", "stay as they were")
	}
	fmt.Fprintf(e.stdout, "%s graded, %d changed%s\n\n", text.Count(g.Graded, "trial", "trials"), g.Changed, kept)
}

// firstLines are those of a text, n at most.
func firstLines(text string, n int) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[:min(n, len(lines))]
}
