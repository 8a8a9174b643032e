package runs

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
)

func (o Options) trustCommand() *cli.Command {
	return &cli.Command{
		Name: "trust", Usage: "read records that waza cannot verify", ArgsUsage: "RUN…",
		Description: `Digests prove that waza wrote a record. They need record.key of the state directory.
A record without digests, or with digests of a different key, is damaged. If record.key
is missing, all records are damaged, and waza records no new run.

waza runs trust reads the records of the named runs nevertheless, and creates record.key
if it is missing. waza runs list labels them, --cache does not reuse their trials, and
waza compare refuses them unless --accept-damaged is given. Restore record.key from a
backup instead if you can. Runs with digests of the present key need no trust, and stay
damaged if their digests are wrong.

Examples:
  waza runs trust RUN      a run copied from another machine
  waza runs trust --all    after record.key was lost`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "trust all runs that waza cannot verify"},
			flags.JSON("print the trusted runs as JSON"),
		},
		Action: o.trust,
	}
}

func (o Options) trust(c *cli.Context) error {
	all := c.Bool("all")
	if all != (c.NArg() == 0) {
		return exit.Usagef("waza runs lists the runs", "waza runs trust takes either runs or --all")
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	store := rn.Catalog().Store
	var ids []string
	if all {
		ids, err = store.List()
	} else {
		ids, err = idsOf(rn, c.Args().Slice())
	}
	if err != nil {
		return err
	}
	trusted, err := store.Trust(ids...)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return o.Stdout.JSON(map[string]any{"trusted": output.NonNil(trusted)})
	}
	for _, id := range trusted {
		fmt.Fprintf(o.Stdout, "trusted run %s\n", output.Clean(id))
	}
	for _, id := range ids {
		if !all && !slices.Contains(trusted, id) {
			fmt.Fprintf(o.Stderr, "waza: run %s is trusted already, or has digests of the present key\n", output.Clean(id))
		}
	}
	return nil
}
