// Package grade implements `waza grade`, which scores recorded runs again. Call [Command].
package grade

import (
	"cmp"
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
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/state"
	"waza/cmd/waza/terminal"
	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/report"
)

// Options opens what the command needs.
type Options struct {
	state.Opener
}

// Command returns waza grade.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "grade", Category: help.Runs,
		Usage:     "score a recorded run with today's graders",
		ArgsUsage: "RUN|SUITE",
		Description: `waza executes nothing: the record holds the agent's actions and the files it left.
It uses the graders, weights, thresholds and metrics of the suite as it is now, and
the new scores replace the recorded ones. It asks a model again only if the question
to the judge changed, or if the judge could not answer before. latest means the
newest run of this project.

Ctrl-C stops it; grades given until then are kept.

With --results, the argument is a suite. Its graders score the outputs and tool calls in
a results.json of microsoft/waza, or of waza's format results. Nothing is recorded. JSON
contains overall_score, passed and tasks. Graders that need data missing from the file,
such as the files that the agent left, fail with an error and are listed as missing.

Examples:
  waza grade latest                        after an edit of the suite
  waza grade RUN --suite strict/eval.yaml  with another suite that has the same tasks
  waza grade RUN --judge-agent copilot     let an agent judge the recorded run
  waza grade evals/demo --results old.json

Exit codes: those of waza run, for the run's new results.
` + exit.Codes,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "suite", Usage: "take the graders from the suite `FILE`", DefaultText: "the run's own"},
			&cli.BoolFlag{Name: "rejudge", Usage: "ask models again even if the question is unchanged"},
			runflags.JudgeModelFlag(""), runflags.JudgeAgentFlag(""), runflags.ExactToolsFlag(""), runflags.PassRewardFlag(""), runflags.ParamFlag(""),
			runflags.FailOnFlag(""),
			flags.JSON("print the changes as JSON"),
		}, fileFlags()...),
		Action: o.gradeRun,
	}
}

// graded is the output of `waza grade --json`.
type graded struct {
	RunID        string             `json:"runId"`
	Status       record.Status      `json:"status"`
	Graded       int                `json:"graded"`
	Kept         int                `json:"kept"`
	Changed      []regrade.Change   `json:"changed"`
	TotalChanged int                `json:"totalChanged"`
	Summary      *record.Summary    `json:"summary"`
	Damage       *record.Damage     `json:"damage,omitempty"`
	Warnings     []string           `json:"warnings,omitempty"`
	Diagnostics  decode.Diagnostics `json:"diagnostics,omitempty"`
	// Error is the reason why grading ended early.
	Error string `json:"error,omitempty"`
}

func (o Options) gradeRun(c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("waza runs lists the runs", "waza grade takes one run, got %d", c.NArg())
	}
	if err := runflags.CheckFailOn(c); err != nil {
		return err
	}
	if err := checkFileFlags(c); err != nil {
		return err
	}
	if c.IsSet("results") {
		return o.gradeFile(c)
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	h, err := rn.Find(c.Args().First())
	if err != nil {
		return err
	}
	damage, err := rn.WarnDamage(h)
	if err != nil {
		return err
	}
	suite, err := o.suite(rn, h.Record(), c)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	g, err := rn.Amender().Grade(ctx, h.ID(), suite, regrade.GradeOptions{Rejudge: c.Bool("rejudge"), Progress: o.progress()})
	var ungradable *regrade.UngradableError
	if errors.As(err, &ungradable) {
		return o.refuse(suite.File, ungradable)
	}
	if g == nil {
		return err
	}
	if terr := o.print(h, g, damage, err, c.Bool("json")); terr != nil {
		return terr
	}
	switch {
	case ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted; grades given until then are recorded"), "")
	case err != nil:
		return exit.New(exit.Error, err, "grades given until then are recorded; waza grade continues from there")
	}
	return exit.With(runflags.FailOn(c.String("fail-on"), exit.OfRun(g.Status, g.Error, g.Summary), g.Summary))
}

// suite loads the suite for the executor, agent and fixtures of the run.
func (o Options) suite(rn *state.Opened, rec *record.Run, c *cli.Context) (*eval.Suite, error) {
	path := cmp.Or(c.String("suite"), rec.Suite.Path)
	switch {
	case path == "" && rec.Imported == nil:
		return nil, exit.Usagef("give its suite with --suite FILE", "the record of run %s lost the path of its suite", rec.RunID)
	case path == "":
		return nil, exit.Usagef("give its suite with --suite FILE", "run %s was imported, so its suite is unknown", rec.RunID)
	}
	return o.load(rn, rec, path, c)
}

func (o Options) load(rn *state.Opened, rec *record.Run, path string, c *cli.Context) (*eval.Suite, error) {
	executor, agent := rec.Overrides()
	if rec.Imported != nil { // the suite may belong to another tool
		executor, agent = "", ""
	}
	least, err := runflags.PassReward(c)
	if err != nil {
		return nil, err
	}
	asked, err := runflags.AskedAgain(c, rec, "waza grade")
	if err != nil {
		return nil, err
	}
	suite, ds, err := rn.Planner().Load(c.Context, path, eval.Options{
		Vocabulary: rn.Planner().Vocabulary(), Executor: executor, Agent: agent, Recorded: rec.Asked.Executor+rec.Asked.Agent == "", ContextDir: rec.Config.ContextDir,
		JudgeModel: cmp.Or(c.String("judge-model"), rec.Asked.JudgeModel), JudgeAgent: cmp.Or(c.String("judge-agent"), rec.Asked.JudgeAgent),
		Baseline: rec.Asked.Baseline, NoSkills: rec.Asked.NoSkills, ExactTools: c.Bool("exact-tools") || rec.Asked.ExactTools, PassReward: cmp.Or(least, rec.Asked.PassReward),
		Params: asked.Params, SecretParams: asked.SecretParams,
	})
	var gone *discover.NotFoundError
	if errors.As(err, &gone) && path == rec.Suite.Path {
		return nil, exit.Usagef("if the suite has moved, give its file with --suite FILE",
			"the suite of run %s no longer exists: %w", rec.RunID, err)
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
	if err := o.Diagnostics(worse); err != nil {
		return nil, err
	}
	if suite == nil || ds.HasErrors() {
		return nil, invalid(path, ds)
	}
	return suite, nil
}

// refuse prints why this machine cannot grade with a suite, and returns the error.
func (o Options) refuse(path string, err *regrade.UngradableError) error {
	if perr := o.Diagnostics(err.Diagnostics); perr != nil {
		return perr
	}
	return invalid(path, err.Diagnostics)
}

func invalid(path string, ds decode.Diagnostics) error {
	return exit.Usagef("waza validate "+path+" lists all findings",
		"%s: the suite is invalid and nothing was graded: %s", path, report.DiagnosticsSummary(ds.Errors()))
}

// progress returns a function that reports progress from time to time.
func (o Options) progress() func(done, total int) {
	reported := time.Now()
	return func(done, total int) {
		if now := time.Now(); now.Sub(reported) > 2*time.Second && done < total {
			reported = now
			fmt.Fprintf(o.Stderr, "graded %d of %d trials\n", done, total)
		}
	}
}

func (o Options) print(h record.Handle, g *regrade.Grading, damage *record.Damage, why error, asJSON bool) error {
	if asJSON {
		out := graded{
			RunID: h.ID(), Status: g.Status, Graded: g.Graded, Kept: g.Kept, Changed: output.NonNil(g.Changes), TotalChanged: g.Changed,
			Summary: g.Summary, Damage: damage, Warnings: g.Warnings, Diagnostics: g.Diagnostics,
		}
		if why != nil {
			out.Error = why.Error()
		}
		return o.Stdout.JSON(out)
	}
	if err := o.Diagnostics(g.Diagnostics); err != nil {
		return err
	}
	for _, w := range g.Warnings {
		fmt.Fprintf(o.Stderr, "waza: %s\n", output.Clean(w))
	}
	o.printChanges(g)
	return o.printReport(h)
}

// printReport prints the report of the graded run.
func (o Options) printReport(h record.Handle) error {
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	return rep.Write(o.Stdout, terminal.Options(o.Stdout))
}

// mostChanges limits the changes that are printed one by one; --json prints all.
const mostChanges = 50

func (o Options) printChanges(g *regrade.Grading) {
	for i, c := range g.Changes {
		if i == mostChanges {
			fmt.Fprintf(o.Stdout, "and %d more\n", g.Changed-i)
			break
		}
		score := ""
		if c.Score != nil {
			score = ", score " + figure.Score(*c.Score)
		}
		fmt.Fprintf(o.Stdout, "%s, trial %d: %s -> %s%s\n", report.Clean(c.TaskID), c.Trial, c.Was, c.Verdict, score)
		for _, line := range firstLines(c.Feedback, 3) {
			fmt.Fprintf(o.Stdout, "    | %s\n", report.Clean(line))
		}
	}
	kept := ""
	if g.Kept > 0 {
		kept = "; " + text.Count(g.Kept, "is unchanged", "are unchanged")
	}
	fmt.Fprintf(o.Stdout, "%s graded, %d changed%s\n\n", text.Count(g.Graded, "trial", "trials"), g.Changed, kept)
}

// firstLines returns at most n lines of a text.
func firstLines(text string, n int) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[:min(n, len(lines))]
}
