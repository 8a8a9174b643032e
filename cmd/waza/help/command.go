package help

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
)

// Name is the name of the command. It describes all commands.
const Name = "help"

// Command returns waza help.
func Command(stdout *output.Stdout) *cli.Command {
	return &cli.Command{
		Name: Name, Category: More,
		Usage:     "print the help of waza or of a command",
		ArgsUsage: "[COMMAND…]",
		Description: `Examples:
  waza help run      the same as waza run --help`,
		Flags: []cli.Flag{flags.JSON("print the commands and their flags as JSON")},
		Action: func(c *cli.Context) error {
			if c.Bool("json") {
				return stdout.JSON(Describe("waza", c.App.Commands))
			}
			commands, parent := c.App.Commands, "waza"
			var found *cli.Command
			for _, name := range c.Args().Slice() {
				if found = Find(commands, name); found == nil {
					return flags.UnknownCommand(parent, name, commands)
				}
				commands, parent = found.Subcommands, found.HelpName
			}
			if found == nil {
				WriteApp(stdout, c.App)
			} else {
				WriteCommand(stdout, found)
			}
			return nil
		},
	}
}
