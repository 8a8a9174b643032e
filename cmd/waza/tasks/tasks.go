// Package tasks implements `waza tasks`, which lists the tasks of a suite. Call [Command].
package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/state"
	"waza/eval"
	"waza/runner/executor/mock"
	"waza/runner/record"
	"waza/runner/report"
)

// Options connects the command to the runner and the outputs.
type Options struct {
	state.Reader
}

// Command returns waza tasks.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "tasks", Category: help.Suites,
		Usage:     "list the tasks of a suite",
		ArgsUsage: "SUITE",
		Description: `With --task and --tag, it lists the tasks that waza run would run with those flags.

Examples:
  waza tasks evals/demo/eval.yaml
  waza tasks evals/demo/eval.yaml --tag smoke`,
		Flags:  append(runflags.Tasks(), flags.JSON("print the tasks as JSON")),
		Action: o.list,
	}
}

// task is a task in the output of `waza tasks --json`.
type task struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags"`
	Golden      bool     `json:"golden,omitempty"`
	File        string   `json:"file"`
	Line        int      `json:"line,omitempty"`
	Trials      int      `json:"trials"`
	Timeout     float64  `json:"timeoutSeconds"`
	Graders     []string `json:"graders"`
}

// listing is the output of `waza tasks --json`.
type listing struct {
	Path  string `json:"path"`
	Name  string `json:"name"`
	Tasks []task `json:"tasks"`
}

func (o Options) list(c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("waza list lists the suites", "waza tasks takes one suite, got %d", c.NArg())
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	suite, err := o.load(rn, c.Args().First())
	if err != nil {
		return err
	}
	tasks, err := tasksOf(c.Context, rn, suite, record.Request{Tasks: c.StringSlice("task"), Tags: c.StringSlice("tag")})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return o.Stdout.JSON(listing{Path: suite.File, Name: suite.Name, Tasks: output.NonNil(tasks)})
	}
	if len(tasks) == 0 {
		fmt.Fprintf(o.Stderr, "waza: %s: the suite has no tasks\n", output.Clean(suite.File))
		return nil
	}
	rows := [][]string{{"Task", "Name", "Tags", "File", "Trials", "Graders"}}
	for _, t := range tasks {
		rows = append(rows, []string{t.ID, t.Name, strings.Join(t.Tags, ", "), t.File, fmt.Sprint(t.Trials), strings.Join(t.Graders, ", ")})
	}
	return o.Stdout.Table(rows)
}

// load loads the suite, and fails when it has errors.
func (o Options) load(rn *state.Opened, path string) (*eval.Suite, error) {
	suite, ds, err := eval.Load(path, eval.Options{Vocabulary: rn.Planner().Vocabulary()})
	if err != nil {
		return nil, err
	}
	if suite == nil || ds.HasErrors() {
		if err := o.Diagnostics(ds.Errors()); err != nil {
			return nil, err
		}
		return nil, exit.Usagef("waza validate "+path+" lists all findings", "%s: the suite is invalid: %s", path,
			report.DiagnosticsSummary(ds.Errors()))
	}
	return suite, nil
}

// tasksOf reads the plan of a run, so that it lists exactly what a run would do.
func tasksOf(ctx context.Context, rn *state.Opened, suite *eval.Suite, req record.Request) ([]task, error) {
	if len(suite.Tasks) == 0 {
		return nil, nil
	}
	if suite.Config.Executor == "" && req.Executor == "" {
		req.Executor = mock.Kind.Name // the tasks are the same for every executor that the user will choose
	}
	plan, err := rn.Planner().Plan(ctx, suite, req)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	var tasks []task
	for _, t := range plan.Tasks {
		if t.Role != record.RoleTask {
			continue
		}
		if last := len(tasks) - 1; last >= 0 && tasks[last].ID == t.Task.ID {
			tasks[last].Trials += t.Trials // in another cell of the matrix
			continue
		}
		info := task{
			ID: t.Task.ID, Name: t.Task.Name, Description: t.Description, Tags: output.NonNil(t.Tags), Golden: t.Golden,
			File: t.RelFile, Line: t.Line,
			Trials: t.Trials, Timeout: t.Timeout.Seconds(), Graders: []string{},
		}
		for _, g := range t.Effective {
			info.Graders = append(info.Graders, g.Name)
		}
		if t.Expected != nil {
			info.Graders = append(info.Graders, "expected")
		}
		tasks = append(tasks, info)
	}
	return tasks, nil
}
