// Package attack implements `waza attack`, which tests whether a suite can be fooled. Call [Command].
package attack

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/suites"
	"waza/cmd/waza/terminal"
	"waza/eval/text"
	"waza/runner/attack"
	"waza/runner/attack/agent"
	"waza/runner/record"
	"waza/runner/report"
)

// Options connects the command to the outputs.
type Options struct {
	output.Streams
}

// Command returns waza attack.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "attack", Category: help.Suites,
		Usage:     "test whether agents that do not do the tasks can pass a suite",
		ArgsUsage: suites.Argument,
		Description: `It lets agents of its own do the tasks: one that does nothing, one that repeats its
prompt, one that carries out the solution of each task, and forgers. Only the solutions
should pass. Each agent gets a copy of the suite and a state directory of its own, so
that neither the suite nor a recorded run changes. Judges are asked, and cost what they
cost in a run. docs/attack.md describes the agents and the remedies.

Examples:
  waza attack evals/demo                      run all agents against all tasks
  waza attack evals/demo --agent nop,oracle   run only two, which takes seconds
  waza attack evals/demo --task sql-* --json  in CI

Exit codes: 0 if no agent fools the suite and all solutions pass, 1 if not, 2 for an
invalid suite, 3 if an agent that forges nothing ended in error.`,
		Flags: append(runflags.Tasks(),
			&cli.StringSliceFlag{
				Name: "agent", Usage: "only the agents `NAME,…`: " + strings.Join(agent.Names(), ", ") + "; repeatable", DefaultText: "all",
			},
			runflags.JudgeModelFlag(""), runflags.JudgeAgentFlag(""), runflags.SandboxFlag(""), runflags.ParamFlag(""),
			&cli.StringFlag{Name: "context-dir", Usage: "use the fixtures in `DIR`", DefaultText: "the task's, else fixtures beside the suite"},
			flags.Time("timeout", "", "limit each trial to `DURATION`, including graders", "the suite's"),
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print the outcome of each agent in each task, and its reason"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print no progress on stderr"},
			flags.FormatFlag("text", "json"),
			flags.JSON("the same as --format json"),
		),
		Action: o.attack,
	}
}

func (o Options) attack(c *cli.Context) error {
	format, err := flags.Format(c, "text", "json")
	if err != nil {
		return err
	}
	change, err := runflags.Sandbox(c)
	if err != nil {
		return err
	}
	params, err := runflags.Params(c)
	if err != nil {
		return err
	}
	var names []string
	for _, list := range c.StringSlice("agent") {
		for name := range strings.SplitSeq(list, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	paths, err := suites.Find(o.Streams, c.Args().Slice())
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	code := exit.Passed
	var reports []*attack.Report
	for _, path := range paths {
		r, err := attack.Run(ctx, attack.Options{
			Path: path, Tasks: c.StringSlice("task"), Tags: c.StringSlice("tag"), Agents: names, JudgeModel: c.String("judge-model"),
			JudgeAgent: c.String("judge-agent"), ContextDir: c.String("context-dir"), Sandbox: change, Timeout: flags.TimeOf(c, "timeout"),
			Params: params, Progress: o.progress(c),
		})
		switch {
		case err != nil && ctx.Err() != nil && c.Context.Err() == nil:
			return exit.New(exit.Interrupted, errors.New("interrupted; the copies of the suite are removed"), "")
		case err != nil:
			return o.explain(path, err)
		}
		reports = append(reports, r)
		code = max(code, codeOf(r))
		if format == "text" {
			if err := o.print(r, c.Bool("verbose")); err != nil {
				return err
			}
		}
	}
	if format == "json" {
		if err := o.Stdout.JSON(map[string]any{"sound": code == exit.Passed, "suites": reports}); err != nil {
			return err
		}
	}
	return exit.With(code)
}

// codeOf returns the exit code of a report. A fault of the suite is certain, even if other results
// are missing.
func codeOf(r *attack.Report) int {
	switch {
	case !r.Sound:
		return exit.Failed
	case r.Incomplete:
		return exit.Error
	}
	return exit.Passed
}

// explain gives an error of an attack its exit code.
func (o Options) explain(path string, err error) error {
	var (
		invalid *attack.SuiteError
		unknown *attack.AgentError
		kind    *attack.KindError
	)
	switch {
	case errors.As(err, &invalid):
		if err := report.Diagnostics(o.Stderr, invalid.Diagnostics, terminal.Options(o.Stderr)); err != nil {
			return err
		}
		return exit.With(exit.Usage)
	case errors.As(err, &unknown):
		return exit.Usagef("", "--agent: %w", err)
	case errors.As(err, &kind):
		return exit.Usagef("", "%s: %w", path, err)
	}
	return err
}

// progress returns a function that prints a line per trial to stderr; nil if nobody wants them.
func (o Options) progress(c *cli.Context) func(attack.Progress) {
	if c.Bool("quiet") || c.Bool("json") || c.String("format") == "json" {
		return nil
	}
	return func(p attack.Progress) {
		fmt.Fprintf(o.Stderr, "%d/%d  %s  %s: %s\n", p.Done, p.Total, output.Clean(p.TaskID), p.Agent, p.Verdict)
	}
}

// print prints a report as text.
func (o Options) print(r *attack.Report, verbose bool) error {
	rows := tableOf(r)
	if verbose {
		rows = outcomesOf(r)
	}
	if err := report.Table(o.Stdout, rows, terminal.Options(o.Stdout)); err != nil {
		return err
	}
	for _, f := range r.Faults {
		fmt.Fprintf(o.Stdout, "\n%s\n  remedy: %s\n", output.Clean(f.Message), output.Clean(f.Remedy))
	}
	if r.Sandbox == record.TierNone || r.Sandbox == record.TierOff {
		fmt.Fprintln(o.Stderr, "warning: the agents ran without a sandbox, so they could read and change the files of the suite's copy")
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(o.Stderr, "warning: %s\n", output.Clean(w))
	}
	fmt.Fprintf(o.Stdout, "\n%s\n", summary(r))
	return nil
}

// tableOf returns a row per task: the outcomes of the agents that forge nothing, and a sum of those
// that do.
func tableOf(r *attack.Report) [][]string {
	head := []string{"Task"}
	forgers := false
	for _, a := range r.Agents {
		if forgers = forgers || a.Forges(); !a.Forges() {
			head = append(head, a.Name)
		}
	}
	if forgers {
		head = append(head, "forgers")
	}
	rows := [][]string{head}
	for _, t := range r.Tasks {
		row := []string{t.ID}
		var forged []attack.TrialOutcome
		for i, a := range r.Agents {
			if a.Forges() {
				forged = append(forged, t.Results[i])
			} else {
				row = append(row, string(t.Results[i].Outcome))
			}
		}
		if forgers {
			row = append(row, sum(forged))
		}
		rows = append(rows, row)
	}
	return rows
}

// sum counts the outcomes of forgers, and names those that passed.
func sum(results []attack.TrialOutcome) string {
	var passed, parts []string
	counts := map[attack.Outcome]int{}
	for _, r := range results {
		if counts[r.Outcome]++; r.Outcome == attack.Passed {
			passed = append(passed, r.Agent)
		}
	}
	if len(passed) > 0 {
		parts = append(parts, "pass: "+strings.Join(passed, " "))
	}
	for _, o := range []attack.Outcome{attack.Failed, attack.Errored, attack.Skipped} {
		if n := counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(parts, ", ")
}

// outcomesOf returns a row per task and agent.
func outcomesOf(r *attack.Report) [][]string {
	rows := [][]string{{"Task", "Agent", "Outcome", "Reason"}}
	for _, t := range r.Tasks {
		for _, res := range t.Results {
			rows = append(rows, []string{t.ID, res.Agent, string(res.Outcome), text.Clip(res.Reason, 160)})
		}
	}
	return rows
}

// summary sums up a report in a sentence.
func summary(r *attack.Report) string {
	unsolved := 0
	for _, t := range r.Tasks {
		for _, res := range t.Results {
			if res.Outcome == attack.Unsolved {
				unsolved++
			}
		}
	}
	said := fmt.Sprintf("%s: %s in %s", output.Clean(r.Name),
		text.Count(len(r.Agents), "agent", "agents"), text.Count(len(r.Tasks), "task", "tasks"))
	if r.Sound {
		said += "; no agent fooled it"
	} else {
		said += "; " + text.Count(len(r.Faults), "fault", "faults") + " found"
	}
	if unsolved > 0 {
		said += "; " + text.Count(unsolved, "task has", "tasks have") + " no solution"
	}
	if r.Incomplete {
		said += "; the result is incomplete because of errors"
	}
	return said
}
