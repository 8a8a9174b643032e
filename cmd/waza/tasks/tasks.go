// Package tasks implements `waza tasks`, which lists the tasks of a suite. Call [Command].
package tasks

import (
	"cmp"
	"context"
	"errors"
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
	"waza/runner/plan"
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
		Usage:     "list the tasks and trigger tests of a suite",
		ArgsUsage: "SUITE",
		Description: `With --task and --tag, it lists those that waza run would run with those flags.

Examples:
  waza tasks evals/demo/eval.yaml
  waza tasks evals/demo/eval.yaml --tag smoke`,
		Flags:  append(runflags.Tasks(), runflags.ParamFlag(""), flags.JSON("print the tasks as JSON")),
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
	Cluster     string   `json:"cluster,omitempty"`
	File        string   `json:"file"`
	Line        int      `json:"line,omitempty"`
	Trials      int      `json:"trials"`
	Timeout     float64  `json:"timeoutSeconds"`
	Graders     []string `json:"graders"`
}

// triggerTest is a prompt of the trigger tests in the output of `waza tasks --json`.
type triggerTest struct {
	ID               string   `json:"id"`
	Prompt           string   `json:"prompt"`
	ShouldTrigger    bool     `json:"shouldTrigger"`
	Skill            string   `json:"skill,omitempty"` // absent if any skill counts
	AcceptableSkills []string `json:"acceptableSkills,omitempty"`
	ForbiddenSkills  []string `json:"forbiddenSkills,omitempty"`
	Trials           int      `json:"trials"`
}

// listing is the output of `waza tasks --json`.
type listing struct {
	Path     string        `json:"path"`
	Name     string        `json:"name"`
	Tasks    []task        `json:"tasks"`
	Triggers []triggerTest `json:"triggerTests,omitempty"`
}

func (o Options) list(c *cli.Context) error {
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	suite, all, err := o.read(c, rn)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return o.Stdout.JSON(all)
	}
	if len(all.Tasks)+len(all.Triggers) == 0 {
		fmt.Fprintf(o.Stderr, "waza: %s: the suite has no tasks\n", output.Clean(suite.File))
		return nil
	}
	if len(all.Tasks) > 0 {
		rows := [][]string{{"Task", "Name", "Tags", "File", "Trials", "Graders"}}
		for _, t := range all.Tasks {
			rows = append(rows, []string{t.ID, t.Name, strings.Join(t.Tags, ", "), t.File, fmt.Sprint(t.Trials), strings.Join(t.Graders, ", ")})
		}
		if err := o.Stdout.Table(rows); err != nil || len(all.Triggers) == 0 {
			return err
		}
		fmt.Fprintln(o.Stdout)
	}
	rows := [][]string{{"Trigger test", "Prompt", "Skill", "Expected", "Trials"}}
	for _, t := range all.Triggers {
		expected := "not used"
		if t.ShouldTrigger {
			expected = "used"
		}
		skills := strings.Join(append([]string{cmp.Or(t.Skill, "any")}, t.AcceptableSkills...), " or ")
		if len(t.ForbiddenSkills) > 0 {
			skills += ", not " + strings.Join(t.ForbiddenSkills, ", ")
		}
		rows = append(rows, []string{t.ID, plan.Title(t.Prompt), skills, expected, fmt.Sprint(t.Trials)})
	}
	return o.Stdout.Table(rows)
}

// read reads the suite that is the command's argument, and lists the tasks that its flags select.
func (o Options) read(c *cli.Context, rn *state.Opened) (*eval.Suite, listing, error) {
	if c.NArg() != 1 {
		return nil, listing{}, exit.Usagef("waza list lists the suites", "waza %s takes one suite, got %d", c.Command.Name, c.NArg())
	}
	params, err := runflags.Params(c)
	if err != nil {
		return nil, listing{}, err
	}
	suite, err := o.load(rn, c.Args().First(), params)
	if err != nil {
		return nil, listing{}, err
	}
	all, err := listingOf(c.Context, rn, suite, record.Request{Tasks: c.StringSlice("task"), Tags: c.StringSlice("tag")})
	return suite, all, err
}

// IDs reads the suite that is the argument of a command with the flags --task, --tag and --param, and
// returns the ids of the selected tasks.
func IDs(c *cli.Context, reader state.Reader, rn *state.Opened) (suite *eval.Suite, ids []string, err error) {
	suite, all, err := Options{reader}.read(c, rn)
	for _, t := range all.Tasks {
		ids = append(ids, t.ID)
	}
	return suite, ids, err
}

// load loads the suite, and fails when it has errors.
func (o Options) load(rn *state.Opened, path string, params map[string]string) (*eval.Suite, error) {
	suite, ds, err := eval.Load(path, eval.Options{Vocabulary: rn.Planner().Vocabulary(), Params: params})
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

// listingOf lists exactly what a run would do: the tasks of its plan, and its trigger tests.
func listingOf(ctx context.Context, rn *state.Opened, suite *eval.Suite, req record.Request) (listing, error) {
	all := listing{Path: suite.File, Name: suite.Name, Tasks: []task{}}
	hasTriggers := suite.Triggers != nil && suite.Triggers.Prompts() > 0
	tests, err := plan.TriggerTests(suite, req)
	for _, t := range tests {
		all.Triggers = append(all.Triggers, triggerTest{
			ID: t.ID, Prompt: t.Prompt, ShouldTrigger: t.ShouldTrigger, Skill: t.Skill,
			AcceptableSkills: t.AcceptableSkills, ForbiddenSkills: t.ForbiddenSkills, Trials: t.Trials,
		})
	}
	switch {
	case len(suite.Tasks) == 0 && !hasTriggers:
		return all, nil
	case len(suite.Tasks) == 0:
		return all, err
	}
	if suite.Config.Executor == "" && req.Executor == "" {
		req.Executor = mock.Kind.Name // the tasks are the same for every executor that the user will choose
	}
	planned, err := rn.Planner().Plan(ctx, suite, req)
	if selection := (*record.SelectionError)(nil); errors.As(err, &selection) && selection.Unmeasured != "" && len(tests) > 0 {
		return all, nil // the filters choose trigger tests only
	}
	if err != nil {
		return all, err
	}
	defer planned.Close()
	for _, t := range planned.Tasks {
		if t.Role == record.RoleTask {
			all.addTask(t)
		}
	}
	return all, nil
}

func (l *listing) addTask(t *plan.Task) {
	if last := len(l.Tasks) - 1; last >= 0 && l.Tasks[last].ID == t.Task.ID {
		l.Tasks[last].Trials += t.Trials // in another cell of the matrix
		return
	}
	info := task{
		ID: t.Task.ID, Name: t.Task.Name, Description: t.Description, Tags: output.NonNil(t.Tags), Golden: t.Golden, Cluster: t.Cluster,
		File: t.RelFile, Line: t.Line,
		Trials: t.Trials, Timeout: t.Timeout.Seconds(), Graders: []string{},
	}
	for _, g := range t.Effective {
		info.Graders = append(info.Graders, g.Name)
	}
	if t.Expected != nil {
		info.Graders = append(info.Graders, "expected")
	}
	l.Tasks = append(l.Tasks, info)
}
