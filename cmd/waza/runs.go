package main

import "github.com/urfave/cli/v2"

// runsCommand holds what is done with recorded runs, one file per subcommand.
func (p *program) runsCommand() *cli.Command {
	return &cli.Command{
		Name: "runs", Category: groupRuns,
		Usage: "list and show runs of the past, and those that go on",
		Description: `Runs are recorded in the state directory: $WAZA_STATE, else waza below
$XDG_STATE_HOME, else ~/.local/state/waza.

Examples:
  waza runs                    the newest runs
  waza runs show RUN           the table of one, as waza run printed it
  waza runs show latest        that of the newest
  waza runs show RUN --json    all of it, transcripts included`,
		Flags:  runsListFlags(),
		Action: p.runsList,
		Subcommands: []*cli.Command{
			p.runsListCommand(),
			p.runsShowCommand(),
		},
	}
}
