// Package mcp implements `waza mcp`, which gives agents tools to run suites. Call
// [Command].
package mcp

import (
	"log/slog"
	"os"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/state"
	"waza/rpc"
	"waza/rpc/mcp"
)

// Options opens what the command needs.
type Options struct {
	state.Opener
	// Files returns the files that carry the protocol.
	Files func() (in, out *os.File, err error)
}

// Command returns waza mcp.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "mcp", Category: help.Daemon,
		Usage: "give an agent tools to run suites (Model Context Protocol)",
		Description: `An MCP server on stdin and stdout, for agents that write skills and suites. They can find,
check and run suites, read results and transcripts, and compare runs. It works in the
current directory, or --dir, and rejects suites outside of it.

It ends when its input ends. SIGINT and SIGTERM also end it; a second signal ends it at
once. Runs that the agent started are then cancelled; waza runs resume continues them.

Add it to an agent:
  Claude Code  claude mcp add waza -- waza mcp
  Copilot CLI  ~/.copilot/mcp-config.json:
    {"mcpServers": {"waza": {"type": "local", "command": "waza", "args": ["mcp"], "tools": ["*"]}}}
  opencode     opencode.json:
    {"mcp": {"waza": {"type": "local", "command": ["waza", "mcp"]}}}
  VS Code      .vscode/mcp.json:
    {"servers": {"waza": {"command": "waza", "args": ["mcp", "--dir", "${workspaceFolder}"]}}}

Exit codes: 0 when the input ended, 1 when the client was gone, 2 for wrong usage, 130
when a signal ended it.

Examples:
  waza mcp
  waza mcp --dir ~/src/skills --verbose 2> waza.log`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name:        "dir",
				Usage:       "work in `DIR`: relative paths start there, and suites and skills outside of it are rejected",
				DefaultText: "the current directory",
			},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "log each call to stderr"},
			flags.JSON("write the log as lines of JSON"),
		}, state.RecordingFlags("")...),
		Action: flags.AtMost(0, o.serve),
	}
}

func (o Options) serve(c *cli.Context) error {
	dir := c.String("dir")
	switch info, err := os.Stat(dir); {
	case !c.IsSet("dir"):
		dir = "."
	case err != nil:
		return exit.Usagef("name an existing directory", "--dir: %v", err)
	case !info.IsDir():
		return exit.Usagef("name a directory", "--dir must be a directory, got %s", dir)
	}
	level := slog.LevelWarn
	if c.Bool("verbose") {
		level = slog.LevelDebug
	}
	log := o.Logger(level, c.Bool("json"))
	r, err := o.Record(c, state.RecordOptions{Hubs: state.HubsOf(state.Server()), Log: log})
	if err != nil {
		return err
	}
	defer r.CloseExporters()
	r.WarnExposed()
	in, out, err := o.Files()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	daemon, err := rpc.New(rpc.Options{Runner: r.Runner, Logger: log, Version: o.Version})
	if err != nil {
		return exit.New(exit.Usage, err, "")
	}
	return exit.With(mcp.Main(ctx, in, out, o.Stderr, mcp.Options{
		Dir: dir, Daemon: daemon, Runner: r.Runner, Logger: log, Version: o.Version,
	}))
}
