package main

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/fleet"
	"waza/cmd/waza/serve"
	"waza/cmd/waza/token"
	"waza/runner"
)

func (e *env) serveCommand() *cli.Command {
	viewer := fleet.NewViewer(e.fleetProgram())
	return serve.Command(serve.Program{
		Stdout: e.stdout, Stderr: e.stderr, Version: buildVersion().Version, StateDir: stateDir, Fleet: viewer,
		Host: func(log *slog.Logger) func() { return fleet.Host(e.fleetProgram(), log) },
		Flags: []cli.Flag{
			fsyncFlag(""), tracesFlag(""),
			&cli.StringFlag{
				Name: "log-level", Usage: "log to stderr at `LEVEL` and above: debug, info, warn or error",
				Value: "info", DefaultText: "info",
			},
		},
		Logger: func(c *cli.Context) (*slog.Logger, error) {
			level, err := logLevel(c)
			return e.logger(level, c.Bool("json")), err
		},
		NewRunner: func(
			c *cli.Context, hubs serve.Hubs, gate runner.Gate, log *slog.Logger,
		) (*runner.Runner, *prometheus.Registry, func(), error) {
			o := e.runnerOptionsWith(hubs, log)
			o.Gate = gate
			rn, w, err := newRecordingRunner(c, o)
			if err != nil {
				return nil, nil, nil, err
			}
			return rn, w.registry(), func() { w.close(); viewer.Close() }, nil
		},
	})
}

func (e *env) tokenCommand() *cli.Command {
	return token.Command(token.Options{Stdout: e.stdout, Stderr: e.stderr, StateDir: stateDir})
}
