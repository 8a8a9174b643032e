package grade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/importing"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/eval"
	results "waza/runner/importing"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/report"
	"waza/runner/workspace"
)

// fileFlags returns the flags for a file of results.
func fileFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name:        "results",
			Usage:       "grade the outputs and tool calls in `FILE`, a results.json; the argument is then the suite",
			DefaultText: "a recorded run",
		},
		&cli.StringSliceFlag{
			Name: "task", Aliases: []string{"t"},
			Usage: "with --results, only tasks whose id or name matches `GLOB`; repeatable", DefaultText: "all",
		},
		&cli.StringFlag{
			Name:        "workspace",
			Usage:       "with --results, put the files of `DIR` into the workspace of each trial for the graders",
			DefaultText: "none: graders of files fail with an error",
		},
		&cli.StringFlag{
			Name: "output", Aliases: []string{"o"},
			Usage: "with --results, write the JSON to `FILE` and print a table", DefaultText: "print the JSON",
		},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "with --results, print each trial that changed to stderr"},
	}
}

// checkFileFlags rejects flags that require --results.
func checkFileFlags(c *cli.Context) error {
	for _, name := range []string{"task", "workspace", "output", "verbose"} {
		if c.IsSet(name) && !c.IsSet("results") {
			return exit.Usagef("waza grade SUITE --results FILE --"+name+" …", "--%s requires --results", name)
		}
	}
	return nil
}

// gradedFile is the output, with the member names of microsoft/waza.
type gradedFile struct {
	// OverallScore is the mean of the tasks' weighted scores; nil when no trial counts.
	OverallScore *float64              `json:"overall_score"`
	Passed       bool                  `json:"passed"`
	Tasks        map[string]gradedTask `json:"tasks"`
	// Missing lists the graders that could not give a score, with the reasons.
	Missing []missing `json:"missing"`
	// Kept counts the trials that were not graded: those with errors, and those of tasks that
	// the suite does not have.
	Kept     int      `json:"kept"`
	Warnings []string `json:"warnings,omitempty"`
}

type gradedTask struct {
	OverallScore *float64 `json:"overall_score"`
	Passed       bool     `json:"passed"`
	// Verdict is passed, failed, error, …: an error is not a failure of the agent.
	Verdict record.Verdict `json:"verdict"`
	// Error is that of the first trial that ended in one.
	Error          string             `json:"error,omitempty"`
	GraderAverages map[string]float64 `json:"grader_averages"`
}

type missing struct {
	TaskID string `json:"task_id"`
	Run    int    `json:"run_number"`
	Grader string `json:"grader"`
	Error  string `json:"error"`
}

// gradeFile grades the file of --results with the suite that the argument names. It records nothing
// in the state directory.
func (o Options) gradeFile(c *cli.Context) error {
	f, err := importing.Open(c.String("results"))
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	dir, err := os.MkdirTemp("", "waza-grade-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rn, err := o.RunnerIn(dir)
	if err != nil {
		return err
	}
	suite, err := o.load(rn, f.Run, c.Args().First(), c)
	if err != nil {
		return err
	}
	if f.Run.Suite.Path, err = filepath.Abs(suite.File); err != nil {
		return err
	}
	if err := choose(suite, f, c.StringSlice("task")); err != nil {
		return err
	}
	if err := results.Write(ctx, rn.Catalog().Store, f, writeOptions(ctx, c.String("workspace"))); err != nil {
		return exit.Usagef("", "%w", err)
	}
	g, err := rn.Amender().Grade(ctx, f.Run.RunID, suite, regrade.GradeOptions{Rejudge: true})
	var ungradable *regrade.UngradableError
	switch {
	case errors.As(err, &ungradable):
		return o.refuse(suite.File, ungradable)
	case ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted; nothing was graded"), "")
	case err != nil:
		return err
	}
	h, err := rn.Catalog().Run(f.Run.RunID)
	if err != nil {
		return err
	}
	out, err := gradedOf(h, g, suite)
	if err != nil {
		return err
	}
	if c.IsSet("task") { // the flag excludes the other tasks
		out.Warnings = nil
	}
	if err := o.printFile(c, h, g, out); err != nil {
		return err
	}
	return exit.With(out.code())
}

// code returns the exit code: errors outrank failures.
func (g *gradedFile) code() int {
	code := exit.Passed
	for _, t := range g.Tasks {
		switch {
		case t.Verdict == record.Errored:
			return exit.Error
		case !t.Passed:
			code = exit.Failed
		}
	}
	return code
}

// choose removes tasks from the suite that are unwanted or not in the file.
func choose(suite *eval.Suite, f *results.File, globs []string) error {
	wanted := plan.NewFilter(globs)
	var known []string
	suite.Tasks = slices.DeleteFunc(slices.Clone(suite.Tasks), func(t *eval.Task) bool {
		known = append(known, t.ID)
		return !wanted.Matches([]string{t.ID, t.Name})
	})
	if len(suite.Tasks) == 0 && len(globs) > 0 {
		return &record.SelectionError{What: "task", Patterns: globs, Known: known}
	}
	if !slices.ContainsFunc(suite.Tasks, func(t *eval.Task) bool {
		return slices.ContainsFunc(f.Run.Tasks, func(ref record.TaskRef) bool { return ref.ID == t.ID })
	}) {
		return exit.Usagef("tasks are matched by their ids", "%s contains no task of %s", f.Path, suite.File)
	}
	return nil
}

func writeOptions(ctx context.Context, dir string) (o results.WriteOptions) {
	if dir != "" {
		o.Workspace = func(blobs *journal.Blobs) (*record.Snapshot, error) {
			snap, err := workspace.Capture(ctx, dir, blobs, nil)
			if err != nil {
				return nil, fmt.Errorf("--workspace: %w", err)
			}
			return snap, nil
		}
	}
	return o
}

func (o Options) printFile(c *cli.Context, h record.Handle, g *regrade.Grading, out *gradedFile) error {
	if c.Bool("verbose") {
		for _, x := range g.Changes {
			fmt.Fprintf(o.Stderr, "%s, trial %d: %s -> %s\n", output.Clean(x.TaskID), x.Trial, x.Was, x.Verdict)
		}
	}
	file := c.String("output")
	if file == "" {
		return o.Stdout.JSON(out)
	}
	if err := output.WriteFile("--output "+file, file, func(w io.Writer) error {
		return json.NewEncoder(report.JSONWriter(w)).Encode(out)
	}); err != nil {
		return err
	}
	return o.printReport(h)
}

// gradedOf sums up the tasks that the suite has.
func gradedOf(h record.Handle, g *regrade.Grading, suite *eval.Suite) (*gradedFile, error) {
	out := &gradedFile{Tasks: map[string]gradedTask{}, Missing: []missing{}, Kept: g.Kept, Warnings: g.Warnings, Passed: true}
	rec := h.Record()
	inSuite := func(task int) bool {
		return rec.Tasks[task].Role == record.RoleTask &&
			slices.ContainsFunc(suite.Tasks, func(t *eval.Task) bool { return t.ID == rec.Tasks[task].ID })
	}
	results, err := h.Results()
	if err != nil {
		return nil, err
	}
	sum, n := 0.0, 0
	for i, res := range results {
		if !inSuite(i) {
			continue
		}
		t := gradedTask{GraderAverages: map[string]float64{}, Verdict: record.Skipped}
		if res != nil {
			t.Verdict, t.Passed = res.Verdict, res.Verdict == record.Passed
			if res.Score != nil {
				t.OverallScore = &res.Score.Mean
				sum += res.Score.Mean
				n++
			}
		}
		out.Passed = out.Passed && t.Passed
		out.Tasks[rec.Tasks[i].ID] = t
	}
	if n > 0 {
		mean := sum / float64(n)
		out.OverallScore = &mean
	}
	return out, averages(h, out, inSuite)
}

// averages adds the mean score of each grader over the trials of a task, and the graders without
// a score.
func averages(h record.Handle, out *gradedFile, wanted func(task int) bool) error {
	count := map[string]map[string]int{}
	return h.Trials(func(task int, t *record.Trial) error {
		if !wanted(task) {
			return nil
		}
		if graded := out.Tasks[t.TaskID]; t.Verdict == record.Errored && graded.Error == "" {
			graded.Error = t.Error
			out.Tasks[t.TaskID] = graded
		}
		for i := range t.Graders {
			r := &t.Graders[i]
			switch {
			case r.Error != "":
				out.Missing = append(out.Missing, missing{t.TaskID, t.TrialNum, r.Name, r.Error})
				continue
			case !r.Scored():
				out.Missing = append(out.Missing, missing{t.TaskID, t.TrialNum, r.Name, "waits for a person's score"})
				continue
			}
			if count[t.TaskID] == nil {
				count[t.TaskID] = map[string]int{}
			}
			count[t.TaskID][r.Name]++
			means := out.Tasks[t.TaskID].GraderAverages
			means[r.Name] += (r.Score - means[r.Name]) / float64(count[t.TaskID][r.Name])
		}
		return nil
	})
}
