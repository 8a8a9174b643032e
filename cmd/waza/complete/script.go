package complete

import (
	_ "embed"
	"io"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
)

var (
	//go:embed shells/waza.bash
	bashCompletion string
	//go:embed shells/waza.zsh
	zshCompletion string
	//go:embed shells/waza.fish
	fishCompletion string
	//go:embed shells/waza.ps1
	powershellCompletion string
)

// Shells returns the names of the shells that have a completion script.
func Shells() (names []string) {
	for _, s := range shells {
		names = append(names, s.name)
	}
	return names
}

// shells are the supported shells. Their scripts contain no command names: they call `waza
// complete`.
var shells = []struct{ name, script, install string }{
	{"bash", bashCompletion, `eval "$(waza completion bash)"  # in ~/.bashrc`},
	{"zsh", zshCompletion, `eval "$(waza completion zsh)"  # in ~/.zshrc, after compinit`},
	{"fish", fishCompletion, `waza completion fish > ~/.config/fish/completions/waza.fish`},
	{"powershell", powershellCompletion, `waza completion powershell | Out-String | Invoke-Expression  # in $PROFILE`},
}

// ScriptCommand returns the command waza completion.
func ScriptCommand(stdout *output.Stdout) *cli.Command {
	description := "Load it from your shell's startup file:\n"
	for _, s := range shells {
		description += "\n  " + s.install
	}
	return &cli.Command{
		Name: "completion", Category: help.More,
		Usage:       "print a script that lets a shell complete waza's commands",
		ArgsUsage:   "bash|zsh|fish|powershell",
		Description: description + "\n\nExamples:\n  source <(waza completion bash)",
		Flags:       []cli.Flag{flags.JSON("print the script in a JSON document")},
		Action: flags.AtMost(1, func(c *cli.Context) error {
			for _, s := range shells {
				if s.name != c.Args().First() {
					continue
				}
				if c.Bool("json") {
					return stdout.JSON(map[string]string{"shell": s.name, "script": s.script})
				}
				_, err := io.WriteString(stdout, s.script)
				return err
			}
			if c.NArg() == 0 {
				return exit.Usagef("waza completion bash, zsh, fish or powershell", "waza completion takes the name of a shell")
			}
			return exit.Usagef("known shells are bash, zsh, fish and powershell", "unknown shell %q", c.Args().First())
		}),
	}
}
