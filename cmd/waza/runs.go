package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/help"
	"waza/cmd/waza/importing"
	"waza/runner"
	"waza/runner/record"
)

// runsCommand holds the commands for recorded runs, one file per subcommand.
func (e *env) runsCommand() *cli.Command {
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
		Flags:  runsListFlags(),
		Action: e.listRuns,
		Subcommands: []*cli.Command{
			e.runsListCommand(),
			e.runsShowCommand(),
			e.runsFollowCommand(),
			e.runsCancelCommand(),
			e.runsRemoveCommand(),
			e.runsCollectCommand(),
			e.runsExportCommand(),
			e.runsResumeCommand(),
			e.runsTrustCommand(),
			importing.Command(importing.Options{Stdout: e.stdout, Runner: e.newRunner}),
		},
	}
}

// oneRun finds the run that is the only argument of a command.
func (e *env) oneRun(c *cli.Context) (*runner.Runner, record.Handle, error) {
	if c.NArg() != 1 {
		return nil, nil, exit.Usagef("waza runs lists the runs", "%s takes one run, got %d", c.Command.HelpName, c.NArg())
	}
	rn, runs, err := e.someRuns(c)
	if err != nil {
		return nil, nil, err
	}
	return rn, runs[0], nil
}

// someRuns finds the runs that are the arguments of a command, each once.
func (e *env) someRuns(c *cli.Context) (*runner.Runner, []record.Handle, error) {
	if c.NArg() == 0 {
		return nil, nil, exit.Usagef("waza runs lists the runs", "%s takes one or more runs", c.Command.HelpName)
	}
	rn, err := e.newRunner()
	if err != nil {
		return nil, nil, err
	}
	var runs []record.Handle
	for _, id := range c.Args().Slice() {
		h, err := findRun(rn, id)
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(runs, func(o record.Handle) bool { return o.ID() == h.ID() }) {
			runs = append(runs, h)
		}
	}
	return rn, runs, nil
}
