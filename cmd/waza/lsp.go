package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
)

func lspCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "lsp", Category: help.Daemon,
		Usage: "serve an editor as its language server",
		Description: `The server of ` + "`waza jsonrpc`" + ` on stdin and stdout, as editors start it that speak
the Language Server Protocol: findings while you type with quick fixes, results and
run buttons above suites and tasks, completion, hover and definitions. All other
methods of the daemon work on the same connection. It ends with the editor.

In an editor, make it the language server of YAML files named eval.yaml and of the
task files beside them, with the directory of the repository as the root:
  Neovim   vim.lsp.start { name = "waza", cmd = { "waza", "lsp" }, root_dir = DIR }
  Helix    [language-server.waza]  command = "waza"  args = ["lsp"]
  Emacs    (add-to-list 'eglot-server-programs '(yaml-mode "waza" "lsp"))

Examples:
  waza lsp
  waza lsp --log-level debug 2> waza.log`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stdio", Usage: "speak on stdin and stdout, as it does in any case; editors add it"},
			fsyncFlag(""), tracesFlag(""),
			&cli.StringFlag{Name: "log-level", Usage: "log to stderr from `LEVEL` on: debug, info, warn or error", Value: "info", DefaultText: "info"},
			flags.JSON("log as lines of JSON; the protocol is JSON in any case"),
		},
		Action: e.do(serve),
	}
}
