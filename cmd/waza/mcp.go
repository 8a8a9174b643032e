package main

import (
	"log/slog"
	"os"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/mcpserver"
	"waza/runner"
)

func mcpCommand(e *env) *cli.Command {
	return mcpserver.Command(mcpserver.Options{
		Stderr: e.stderr, Version: buildVersion().Version, Log: e.logger, Flags: []cli.Flag{fsyncFlag(""), tracesFlag("")},
		Files: func() (in, out *os.File, err error) { return protocolFiles(e) },
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
