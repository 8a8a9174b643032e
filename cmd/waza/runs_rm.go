package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/eval/text"
	"waza/runner"
)

func (p *program) runsRemoveCommand() *cli.Command {
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
		Flags:  []cli.Flag{jsonFlag("print what was deleted as JSON")},
		Action: p.runsRemove,
	}
}

func (p *program) runsRemove(c *cli.Context) error {
	if c.NArg() == 0 {
		return usage("waza runs lists the runs", "waza runs rm takes one run or more")
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	ids, err := idsOf(rn, c.Args().Slice())
	if err != nil {
		return err
	}
	removed, failed := []runner.Removed{}, error(nil)
	for _, id := range ids {
		bytes, err := rn.Remove(id)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removed = append(removed, runner.Removed{What: runner.RemovedRun, RunID: id, Bytes: bytes})
		if !c.Bool("json") {
			fmt.Fprintf(p.stdout, "removed run %s, %s\n", clean(id), size(bytes))
		}
	}
	if c.Bool("json") {
		if err := p.printJSON(map[string]any{"removed": removed}); err != nil {
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
		var pr *problem
		var ambiguous *runner.AmbiguousRunError
		switch {
		case err == nil:
			id = h.ID()
		case errors.Is(err, runner.ErrRunNotFound), errors.As(err, &ambiguous), errors.As(err, &pr):
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// size gives a number of bytes as people say it.
func size(bytes int64) string {
	n, unit := float64(bytes), ""
	for _, larger := range []string{"kB", "MB", "GB", "TB"} {
		if n < 999.5 {
			break
		}
		n, unit = n/1000, larger
	}
	switch {
	case unit == "":
		return text.Count(int(bytes), "byte", "bytes")
	case n < 9.95:
		return fmt.Sprintf("%.1f %s", n, unit)
	}
	return fmt.Sprintf("%.0f %s", n, unit)
}
