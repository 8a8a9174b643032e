package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

func runsRemoveCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "delete runs with all they recorded", ArgsUsage: "RUN…",
		Description: `A run that goes on, or whose record is being changed, is refused. latest means the
newest run.

Examples:
  waza runs rm RUN
  waza runs gc --older-than 30d    all that are older

Exit codes:
  0    all of the runs are deleted
  2    wrong usage, no such run, and then none is deleted; or one goes on, and then
       the others are
  3    a run could not be deleted to the end; waza runs gc tries it again`,
		Flags:  []cli.Flag{flags.JSON("print what was deleted as JSON")},
		Action: e.do(removeRuns),
	}
}

func removeRuns(e *env, c *cli.Context) error {
	if c.NArg() == 0 {
		return exit.Usagef("waza runs lists the runs", "waza runs rm takes one run or more")
	}
	rn, err := e.newRunner()
	if err != nil {
		return err
	}
	ids, err := idsOf(rn, c.Args().Slice())
	if err != nil {
		return err
	}
	removed, failed := []catalog.Removed{}, error(nil)
	for _, id := range ids {
		bytes, err := rn.Catalog().Remove(id)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removed = append(removed, catalog.Removed{What: catalog.RemovedRun, RunID: id, Bytes: bytes})
		if !c.Bool("json") {
			fmt.Fprintf(e.stdout, "removed run %s, %s\n", output.Clean(id), output.Size(bytes))
		}
	}
	if c.Bool("json") {
		if err := e.stdout.JSON(map[string]any{"removed": removed}); err != nil {
			return err
		}
	}
	return failed
}

// idsOf returns the ids of the runs that are named, each once. A run need not be
// readable to be deleted.
func idsOf(rn *runner.Runner, names []string) ([]string, error) {
	var ids []string
	for _, id := range names {
		h, err := findRun(rn, id)
		var pr *exit.Problem
		var ambiguous *catalog.AmbiguousRunError
		switch {
		case err == nil:
			id = h.ID()
		case errors.Is(err, record.ErrRunNotFound), errors.As(err, &ambiguous), errors.As(err, &pr):
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
