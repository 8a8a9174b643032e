package runs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/runner/catalog"
	"waza/runner/record"
)

func (o Options) removeCommand() *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "delete runs and their records", ArgsUsage: "RUN…",
		Description: `It refuses to delete a run that is active or that another process changes. latest
means the newest run of this project.

Examples:
  waza runs rm RUN
  waza runs gc --older-than 30d    all older runs

Exit codes:
  0    all of the runs are deleted
  2    wrong usage, or no such run: none is deleted; or one is active: the others
       are deleted
  3    a run could not be deleted completely; waza runs gc tries again`,
		Flags:  []cli.Flag{flags.JSON("print the deleted runs as JSON")},
		Action: o.remove,
	}
}

func (o Options) remove(c *cli.Context) error {
	if c.NArg() == 0 {
		return exit.Usagef("waza runs lists the runs", "waza runs rm takes one or more runs")
	}
	rn, err := o.Runner()
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
		removed = append(removed, catalog.Removed{Kind: catalog.RemovedRun, RunID: id, Bytes: bytes})
		if !c.Bool("json") {
			fmt.Fprintf(o.Stdout, "removed run %s, %s\n", output.Clean(id), output.Size(bytes))
		}
	}
	if c.Bool("json") {
		if err := o.Stdout.JSON(map[string]any{"removed": removed}); err != nil {
			return err
		}
	}
	return failed
}

// idsOf returns the ids of the named runs, each once. A run can be deleted even if it cannot be
// read.
func idsOf(rn *state.Opened, names []string) ([]string, error) {
	var ids []string
	for _, id := range names {
		h, err := rn.Find(id)
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
