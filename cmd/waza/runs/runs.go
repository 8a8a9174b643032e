// Package runs implements `waza runs`, the commands for recorded runs, a file per subcommand. Call
// [Command].
package runs

import (
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/importing"
	"waza/cmd/waza/state"
	"waza/runner/record"
)

// Options connects the commands to the recorded runs and the outputs. Its methods are the
// subcommands and their output.
type Options struct {
	state.Reader
	// Resume is waza runs resume, which carries out a run.
	Resume *cli.Command
}

// Command returns waza runs with its subcommands.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "runs", Category: help.Runs,
		Usage: "list, show, follow, cancel, resume, import and remove runs",
		Description: `Runs are recorded in the state directory: $WAZA_STATE, else waza below
$XDG_STATE_HOME, else ~/.local/state/waza.

Examples:
  waza runs                    the newest runs
  waza runs show RUN           the table of one, as waza run printed it
  waza runs show latest        the table of the newest
  waza runs show RUN --json    the whole result, transcripts included
  waza runs follow latest      the progress of the newest, as waza run shows it
  waza runs cancel RUN         end one, in any process
  waza runs export RUN         the whole result, or a report in another format
  waza runs resume RUN         resume one that was interrupted
  waza runs import FILE        record results of another tool
  waza runs trust --all        read records that waza cannot verify
  waza runs gc --keep 100      delete old ones, and leftovers of killed processes`,
		Flags:  listFlags(),
		Action: flags.Group(o.list),
		Subcommands: []*cli.Command{
			o.listCommand(), o.showCommand(), o.followCommand(), o.cancelCommand(), o.removeCommand(),
			o.collectCommand(), o.exportCommand(), o.Resume, o.trustCommand(),
			o.importCommand(),
		},
	}
}

// importCommand returns waza import as a subcommand, which has no category.
func (o Options) importCommand() *cli.Command {
	c := importing.Command(importing.Options{Stdout: o.Stdout, Runner: o.Runner})
	c.Category = ""
	return c
}

// oneRun finds the run that is the only argument of a command.
func (o Options) oneRun(c *cli.Context) (*state.Opened, record.Handle, error) {
	if c.NArg() != 1 {
		return nil, nil, exit.Usagef("waza runs lists the runs", "%s takes one run, got %d", c.Command.HelpName, c.NArg())
	}
	rn, runs, err := o.someRuns(c)
	if err != nil {
		return nil, nil, err
	}
	return rn, runs[0], nil
}

// someRuns finds the runs that are the arguments of a command, each once.
func (o Options) someRuns(c *cli.Context) (*state.Opened, []record.Handle, error) {
	if c.NArg() == 0 {
		return nil, nil, exit.Usagef("waza runs lists the runs", "%s takes one or more runs", c.Command.HelpName)
	}
	rn, err := o.Runner()
	if err != nil {
		return nil, nil, err
	}
	var runs []record.Handle
	for _, id := range c.Args().Slice() {
		h, err := rn.Find(id)
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(runs, func(o record.Handle) bool { return o.ID() == h.ID() }) {
			runs = append(runs, h)
		}
	}
	return rn, runs, nil
}
