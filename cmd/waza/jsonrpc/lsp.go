package jsonrpc

import (
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/state"
)

// LSPCommand returns waza lsp.
func LSPCommand(o Options) *cli.Command {
	return &cli.Command{
		Name: "lsp", Category: help.Daemon,
		Usage: "serve an editor as its language server",
		Description: `Serves the methods of ` + "`waza jsonrpc`" + ` and the Language Server Protocol on stdin and stdout.
An editor gets findings with quick fixes while you type, results and run buttons
above suites and tasks, completion, hover and definitions. It ends when the editor
closes the connection.

In an editor, make it the language server of YAML files named eval.yaml and of the
task files beside them, with the directory of the repository as the root:
  Neovim   vim.lsp.start { name = "waza", cmd = { "waza", "lsp" }, root_dir = DIR }
  Helix    [language-server.waza]  command = "waza"  args = ["lsp"]
  Emacs    (add-to-list 'eglot-server-programs '(yaml-mode "waza" "lsp"))

Examples:
  waza lsp
  waza lsp --log-level debug 2> waza.log`,
		Flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "stdio", Usage: "accepted because editors pass it; waza lsp always uses stdin and stdout"},
		}, state.RecordingFlags(""), []cli.Flag{flags.LogLevel(), flags.JSON("write the log as lines of JSON")}),
		Action: o.serve,
	}
}
