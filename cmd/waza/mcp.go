package main

import (
	"log/slog"
	"os"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/mcp"
	"waza/runner"
)

func (e *env) mcpCommand() *cli.Command {
	return mcp.Command(mcp.Options{
		Stderr: e.stderr, Version: buildVersion().Version, Log: e.logger, Flags: []cli.Flag{fsyncFlag(""), tracesFlag("")},
		Files: func() (in, out *os.File, err error) { return e.protocolFiles() },
		Runner: func(c *cli.Context, log *slog.Logger) (*runner.Runner, func(), error) {
			r, w, err := newRecordingRunner(c, e.runnerOptionsWith(hubsOf(serverLink()), log))
			if err != nil {
				return nil, nil, err
			}
			e.warnExposed(r)
			return r, w.close, nil
		},
	})
}
