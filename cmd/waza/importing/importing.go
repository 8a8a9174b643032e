// Package importing implements `waza import`, which records results of other tools as runs.
// Call [Command].
package importing

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/eval/text"
	"waza/runner/importing"
	"waza/runner/importing/source"
)

// Options connects the command to the recorded runs and its outputs.
type Options struct {
	Stdout *output.Stdout
	Runner func() (*state.Opened, error)
}

// mostFiles limits the files of a call.
const mostFiles = 1000

// Command returns waza import, which is also waza runs import.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "import", Category: help.Runs, Usage: "record results of other tools as runs", ArgsUsage: "FILE…",
		Description: `FILE contains results of another tool and becomes a run:

  Inspect     a log, .eval or .json
  Vally       results.jsonl
  promptfoo   the output of promptfoo eval -o FILE.json
  SWE-bench   MODEL.RUN.json, a report.json, or a folder logs/run_evaluation/RUN/MODEL
  tau2        a file of simulations
  Harbor      result.json of a trial, a folder of trials, or a trajectory (ATIF)
  waza        results.json of microsoft/waza, or of waza runs export --format results

The run has the tasks, trials, scores, tool calls, transcripts and date of the file. Lists
mark it as imported. Verdicts of trials and scores of graders come from the file; waza
computes all rates, means and intervals from them. Unknown scores, times and costs stay
unknown.

waza does not record imported results again. It reads all files before it records the
first, so a damaged file leaves nothing behind. With --suite, waza grade, history and
latest~1 treat the run as one of that suite.

Examples:
  waza import results/*.json
  waza import logs/2026-01-01T10-00-00_task_1.eval
  waza import old.json --suite evals/demo/eval.yaml
  waza compare old.json latest        requires no import

Exit codes: 0 when all files are recorded as runs; 2 when a file cannot be imported; 3
when the state directory cannot be written; 130 when Ctrl-C ended it.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "suite", Usage: "record the runs as runs of the suite `FILE`", DefaultText: "unknown"},
			flags.JSON("print the outcome for each file as JSON"),
		},
		Action: o.run,
	}
}

// imported is the outcome for a file in the output of --json.
type imported struct {
	File  string `json:"file"`
	RunID string `json:"runId"`
	// Already reports that the results are recorded; Original, by the run itself.
	Already  bool     `json:"already,omitempty"`
	Original bool     `json:"original,omitempty"`
	Suite    string   `json:"suite"`
	Tasks    int      `json:"tasks"`
	Trials   int      `json:"trials"`
	Notes    []string `json:"notes,omitempty"`
}

func (o Options) run(c *cli.Context) error {
	if c.NArg() == 0 || c.NArg() > mostFiles {
		return exit.Usagef("waza import results.json", "waza import takes 1 to %d files, got %d", mostFiles, c.NArg())
	}
	suite := c.String("suite")
	if suite != "" {
		if !flags.IsFile(suite) {
			return exit.Usagef("waza list finds the suites below a directory", "--suite %s does not exist", suite)
		}
		var err error
		if suite, err = filepath.Abs(suite); err != nil {
			return err
		}
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	var files []*importing.File
	for _, path := range c.Args().Slice() {
		f, err := Open(path)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return interrupted()
		}
		f.Run.Suite.Path = suite
		files = append(files, f)
	}
	list := []imported{}
	for _, f := range files {
		saved, err := importing.Save(ctx, rn.Catalog().Store, f)
		switch {
		case err != nil && ctx.Err() != nil:
			return interrupted()
		case err != nil:
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		list = append(list, imported{
			File: f.Path, RunID: saved.RunID, Already: saved.Already, Original: saved.Original, Suite: f.Run.Suite.Name,
			Tasks: f.Summary.Total, Trials: f.Summary.Trials.Total, Notes: f.Notes,
		})
	}
	if c.Bool("json") {
		return o.Stdout.JSON(map[string]any{"imported": list})
	}
	for _, i := range list {
		fmt.Fprintln(o.Stdout, i)
	}
	return nil
}

func interrupted() error {
	return exit.New(exit.Interrupted, errors.New("interrupted; files imported until then are recorded"), "")
}

func (i imported) String() string {
	line := output.Clean(fmt.Sprintf("%s: run %s of %s with %s and %s", i.File, i.RunID, i.Suite,
		text.Count(i.Tasks, "task", "tasks"), text.Count(i.Trials, "trial", "trials")))
	switch {
	case i.Original:
		line = output.Clean(fmt.Sprintf("%s: not imported, because it was exported from run %s, which is recorded here", i.File, i.RunID))
	case i.Already:
		line = output.Clean(fmt.Sprintf("%s: imported before, as run %s", i.File, i.RunID))
	}
	for _, n := range i.Notes {
		line += "\n  note: " + output.Clean(n)
	}
	return line
}

// Open reads results of another tool. Its error has a hint.
func Open(path string) (*importing.File, error) {
	f, err := importing.Open(path)
	var bad *source.Error
	if errors.As(err, &bad) {
		return nil, exit.Usagef(bad.Hint, "%w", err)
	}
	return f, err
}
