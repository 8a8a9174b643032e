package main

import (
	"log/slog"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/config"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/secret"
	"waza/cmd/waza/serving"
	"waza/cmd/waza/terminal"
	"waza/runner"
	"waza/runner/executor/remote"
	"waza/runner/report"
)

func serveCommand(e *env) *cli.Command {
	const doors = "Doors"
	return &cli.Command{
		Name: "serve", Category: help.Daemon,
		Usage: "let agents that live elsewhere connect and do trials",
		Description: `Opens the doors of the configuration, each at an address of its own, and serves
them until SIGINT or SIGTERM. Runs that are active then can be resumed; a second
signal ends the server at once. One server runs per state directory; other waza
processes of the same user reach it by a socket there.

Flags override variables of the environment, WAZA_SERVE_AGENTS_LISTEN for the key
listen of agents, and these override the file. The variable WAZA_AGENT_KEY is the key
that agents show.

Examples:
  waza serve                               agents at ws://127.0.0.1:8080
  waza serve --config waza.yaml --check    check the file and list the doors
  waza serve --agents :9000 --jobs off

Exit codes: 0 when a signal ended it while no run was active, 2 for wrong usage or an
invalid configuration, 3 when a door failed or another server is running, 130 when a
signal interrupted runs.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "read the YAML or JSON file `FILE`; waza schema serve prints its schema", DefaultText: "none"},
			&cli.StringFlag{Name: "agents", Category: doors, Usage: "listen for evaluation agents at `ADDR`, or off", DefaultText: "the configuration's, else 127.0.0.1:8080"},
			&cli.StringFlag{Name: "jobs", Category: doors, Usage: "serve JSON-RPC, health and metrics at `ADDR`, or off", DefaultText: "the configuration's, else 127.0.0.1:8501"},
			&cli.StringFlag{Name: "browser", Category: doors, Usage: "listen for browser assistants at `ADDR`; this version takes only off", DefaultText: "off"},
			&cli.StringFlag{Name: "router", Category: doors, Usage: "listen for clients of the message router at `ADDR`; this version takes only off", DefaultText: "off"},
			&cli.BoolFlag{Name: "insecure", Category: doors, Usage: "accept connections without TLS on addresses that other machines can reach"},
			&cli.BoolFlag{Name: "check", Usage: "check the configuration, list the doors and end"},
			fsyncFlag(""), tracesFlag(""),
			&cli.StringFlag{Name: "log-level", Usage: "log to stderr from `LEVEL` on: debug, info, warn or error", Value: "info", DefaultText: "info"},
			flags.JSON("log as lines of JSON; with --check, print the result as JSON"),
		},
		Action: e.do(serveDoors),
	}
}

// serveConfig reads the configuration that the flags and the environment describe.
func serveConfig(c *cli.Context) config.Options {
	o := config.Options{File: c.String("config"), Environ: os.Environ(), Key: secret.Take("WAZA_AGENT_KEY")}
	for _, d := range config.Default().Doors() {
		if c.IsSet(d.Name) {
			o.Flags = append(o.Flags, config.Setting{From: "--" + d.Name, Block: d.Name, Key: "listen", Value: c.String(d.Name)})
		}
		if d.Config != nil && c.IsSet("insecure") {
			o.Flags = append(o.Flags, config.Setting{From: "--insecure", Block: d.Name, Key: "insecure", Value: strconv.FormatBool(c.Bool("insecure"))})
		}
	}
	return o
}

func serveDoors(e *env, c *cli.Context) error {
	if err := flags.AtMost(c, 0); err != nil {
		return err
	}
	for _, s := range []string{"config", "agents", "jobs", "browser", "router"} {
		if c.IsSet(s) && c.String(s) == "" {
			return exit.Usagef("leave it out for the default", "--%s: the value is empty", s)
		}
	}
	level, err := logLevel(c)
	if err != nil {
		return err
	}
	cfg, ds := config.Load(serveConfig(c))
	checked := serving.Check(cfg, ds)
	if c.Bool("check") {
		return printCheck(e, c, checked)
	}
	if err := e.printDiagnostics(ds); err != nil {
		return err
	}
	if !checked.Valid {
		return exit.Usagef("waza serve --check prints all findings", "the configuration is invalid: %s", report.DiagnosticsSummary(ds.Errors()))
	}
	return e.serve(c, cfg, e.logger(level, c.Bool("json")))
}

func printCheck(e *env, c *cli.Context, checked serving.Checked) error {
	var err error
	if c.Bool("json") {
		err = e.stdout.JSON(checked)
	} else {
		err = checked.Write(e.stdout, terminal.Options(e.stdout))
	}
	if err == nil && !checked.Valid {
		return exit.With(exit.Usage)
	}
	return err
}

func (e *env) serve(c *cli.Context, cfg *config.Config, log *slog.Logger) error {
	dir, err := stateDir()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	w := &watchers{}
	err = serving.Main(ctx, serving.Options{
		Config: cfg, StateDir: dir, Version: buildVersion().Version, Log: log,
		NewRunner: func(hub remote.Hub) (rn *runner.Runner, metrics *prometheus.Registry, err error) {
			if rn, w, err = newRecordingRunner(c, e.runnerOptionsWith(hub, log)); err != nil {
				return nil, nil, err
			}
			return rn, w.registry(), nil
		},
	})
	w.close()
	return err
}
