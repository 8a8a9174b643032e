package main

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/fleets"
	"waza/cmd/waza/serving"
	"waza/cmd/waza/tokens"
	"waza/runner"
)

func serveCommand(e *env) *cli.Command {
	viewer := fleets.NewViewer(e.fleetProgram())
	return serving.Command(serving.Program{
		Stdout: e.stdout, Stderr: e.stderr, Version: buildVersion().Version, StateDir: stateDir, Fleet: viewer,
		Host: func(log *slog.Logger) func() { return fleets.Host(e.fleetProgram(), log) },
		Flags: []cli.Flag{
			fsyncFlag(""), tracesFlag(""),
			&cli.StringFlag{Name: "log-level", Usage: "log to stderr at `LEVEL` and above: debug, info, warn or error", Value: "info", DefaultText: "info"},
		},
		Logger: func(c *cli.Context) (*slog.Logger, error) {
			level, err := logLevel(c)
			return e.logger(level, c.Bool("json")), err
		},
		NewRunner: func(c *cli.Context, hubs serving.Hubs, gate runner.Gate, log *slog.Logger) (*runner.Runner, *prometheus.Registry, func(), error) {
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

func tokenCommand(e *env) *cli.Command {
	return tokens.Command(tokens.Options{Stdout: e.stdout, Stderr: e.stderr, StateDir: stateDir})
}
