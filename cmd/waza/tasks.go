package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/eval"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/report"
)

func (e *env) tasksCommand() *cli.Command {
	return &cli.Command{
		Name: "tasks", Category: help.Suites,
		Usage:     "list the tasks of a suite",
		ArgsUsage: "SUITE",
		Description: `With --task and --tag, it lists the tasks that waza run would run with those flags.

Examples:
  waza tasks evals/demo/eval.yaml
  waza tasks evals/demo/eval.yaml --tag smoke`,
		Flags: []cli.Flag{
			taskFlag(), tagFlag(),
			flags.JSON("print the tasks as JSON"),
		},
		Action: e.listTasks,
	}
}

func taskFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "task", Aliases: []string{"t"}, Category: "Selection",
		Usage: "only tasks whose id or name matches `GLOB`; repeatable", DefaultText: "all"}
}

func tagFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "tag", Category: "Selection",
		Usage: "only tasks with a tag that matches `GLOB`; repeatable", DefaultText: "all"}
}

// taskInfo is a task in the output of `waza tasks --json`.
type taskInfo struct {
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

// taskListing is the output of `waza tasks --json`.
type taskListing struct {
	Path  string     `json:"path"`
	Name  string     `json:"name"`
	Tasks []taskInfo `json:"tasks"`
}

func (e *env) listTasks(c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("waza list lists the suites", "waza tasks takes one suite, got %d", c.NArg())
	}
	rn, err := e.newRunner()
	if err != nil {
		return err
	}
	suite, err := e.loadOne(rn, c.Args().First())
	if err != nil {
		return err
	}
	tasks, err := taskInfos(c.Context, rn, suite, record.Request{Tasks: c.StringSlice("task"), Tags: c.StringSlice("tag")})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return e.stdout.JSON(taskListing{Path: suite.File, Name: suite.Name, Tasks: output.NonNil(tasks)})
	}
	if len(tasks) == 0 {
		fmt.Fprintf(e.stderr, "waza: %s: the suite has no tasks\n", output.Clean(suite.File))
		return nil
	}
	rows := [][]string{{"Task", "Name", "Tags", "File", "Trials", "Graders"}}
	for _, t := range tasks {
		rows = append(rows, []string{t.ID, t.Name, strings.Join(t.Tags, ", "), t.File, fmt.Sprint(t.Trials), strings.Join(t.Graders, ", ")})
	}
	return report.Table(e.stdout, rows, terminal.Options(e.stdout))
}

// taskInfos reads the plan of a run, so that it lists exactly what a run would do.
func taskInfos(ctx context.Context, rn *runner.Runner, suite *eval.Suite, req record.Request) ([]taskInfo, error) {
	if len(suite.Tasks) == 0 {
		return nil, nil
	}
	plan, err := rn.Planner().Plan(ctx, suite, req)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	var tasks []taskInfo
	for _, t := range plan.Tasks {
		if t.Role != record.RoleTask {
			continue
		}
		if last := len(tasks) - 1; last >= 0 && tasks[last].ID == t.Task.ID {
			tasks[last].Trials += t.Trials // in another cell of the matrix
			continue
		}
		info := taskInfo{
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
