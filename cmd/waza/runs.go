package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/help"
	"waza/runner"
	"waza/runner/record"
)

// runsCommand holds what is done with recorded runs, one file per subcommand.
func runsCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "runs", Category: help.Runs,
		Usage: "list, show, follow, cancel, resume and remove runs",
		Description: `Runs are recorded in the state directory: $WAZA_STATE, else waza below
$XDG_STATE_HOME, else ~/.local/state/waza.

Examples:
  waza runs                    the newest runs
  waza runs show RUN           the table of one, as waza run printed it
  waza runs show latest        that of the newest
  waza runs show RUN --json    all of it, transcripts included
  waza runs follow latest      what goes on in the newest, as waza run shows it
  waza runs cancel RUN         end one, whichever process carries it out
  waza runs export RUN         all of it, or a report in another format
  waza runs resume RUN         go on with one that was cut short
  waza runs gc --keep 100      delete old ones, and what killed processes left`,
		Flags:  runsListFlags(),
		Action: e.do(listRuns),
		Subcommands: []*cli.Command{
			runsListCommand(e),
			runsShowCommand(e),
			runsFollowCommand(e),
			runsCancelCommand(e),
			runsRemoveCommand(e),
			runsCollectCommand(e),
			runsExportCommand(e),
			runsResumeCommand(e),
		},
	}
}

// oneRun finds the run that is the only argument of a command.
func oneRun(e *env, c *cli.Context) (*runner.Runner, record.Handle, error) {
	if c.NArg() != 1 {
		return nil, nil, exit.Usagef("waza runs lists the runs", "%s takes one run, not %d", c.Command.HelpName, c.NArg())
	}
	rn, runs, err := someRuns(e, c)
	if err != nil {
		return nil, nil, err
	}
	return rn, runs[0], nil
}

// someRuns finds the runs that are the arguments of a command, each once.
func someRuns(e *env, c *cli.Context) (*runner.Runner, []record.Handle, error) {
	if c.NArg() == 0 {
		return nil, nil, exit.Usagef("waza runs lists the runs", "%s takes one run or more", c.Command.HelpName)
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
