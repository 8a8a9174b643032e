package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/config"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/fleet"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/secret"
	"waza/cmd/waza/state"
	"waza/cmd/waza/terminal"
	"waza/runner"
	"waza/runner/report"
)

// Program opens what the command needs.
type Program struct {
	state.Opener
}

// Command returns waza serve.
func Command(p Program) *cli.Command {
	return &cli.Command{
		Name: "serve", Category: help.Daemon,
		Usage: "let agents connect and execute trials; show runs in a browser",
		Description: `Opens the doors of the configuration, each at its own address, and serves them until
SIGINT or SIGTERM. Runs that are active then can be resumed; a second signal ends the
server at once. One server runs per state directory; other waza processes of the same
user reach it through a socket there.

On a terminal it prints a link to the dashboard, which works once and within ten
minutes. waza run --dashboard prints further links.

Flags override environment variables, such as WAZA_SERVE_AGENTS_LISTEN for the key
listen of agents. Variables override the file of --config; without that flag, waza
reads no file. The variable WAZA_AGENT_KEY holds the key that agents present.

A door whose address is in use stays closed; the log names its flag. The other doors
open.

Examples:
  waza serve                               agents at ws://127.0.0.1:8080, browser
                                           assistants at ws://127.0.0.1:8000/ws
  waza serve --open                        the same, with the dashboard in a browser
  waza serve --config waza.yaml --check    check the file and list the doors
  waza serve --agents :9000 --jobs off --browser off

Exit codes: 0 when a signal ended it while no run was active; 2 for wrong usage, an
invalid configuration, a second server, or when no door could open; 3 when a door
failed; 130 when a signal interrupted runs.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "read the YAML or JSON file `FILE`; waza schema serve prints its schema", DefaultText: "none"},
		}, doorFlags(), []cli.Flag{
			&cli.IntFlag{
				Name: "max-jobs", Category: doorsCategory,
				Usage:       "run at most `N` jobs of each user at once, 0 for no limit; others wait",
				DefaultText: "the configuration's, else 2",
			},
			&cli.BoolFlag{
				Name: "insecure", Category: doorsCategory,
				Usage: "accept connections without TLS on addresses that other machines can reach",
			},
			&cli.BoolFlag{Name: "open", Usage: "open the dashboard in a browser: the program of $BROWSER, or the system's default"},
			&cli.BoolFlag{Name: "check", Usage: "check the configuration, list the doors and exit"},
		}, state.RecordingFlags(""), []cli.Flag{flags.LogLevel(), flags.JSON("write the log as lines of JSON; with --check, print the result as JSON")}),
		Action: flags.AtMost(0, p.serve),
	}
}

// doorsCategory is the heading of the flags of doors in the help.
const doorsCategory = "Doors"

// doorFlags returns a flag for the address of each door.
func doorFlags() []cli.Flag {
	var list []cli.Flag
	for _, d := range config.Default().Doors() {
		list = append(list, &cli.StringFlag{
			Name: d.Name, Category: doorsCategory, Usage: d.Usage,
			DefaultText: "the configuration's, else " + d.Config.Listen,
		})
	}
	return list
}

// sources returns the sources of the configuration.
func sources(c *cli.Context) config.Options {
	o := config.Options{File: c.String("config"), Dir: ".", Environ: os.Environ(), Key: secret.Unset("WAZA_AGENT_KEY")}
	for _, d := range config.Default().Doors() {
		if c.IsSet(d.Name) {
			o.Flags = append(o.Flags, config.Setting{From: "--" + d.Name, Block: d.Name, Key: "listen", Value: c.String(d.Name)})
		}
		if d.Config != nil && c.IsSet("insecure") {
			o.Flags = append(o.Flags, config.Setting{
				From: "--insecure", Block: d.Name, Key: "insecure", Value: strconv.FormatBool(c.Bool("insecure")),
			})
		}
	}
	if c.IsSet("max-jobs") {
		o.Flags = append(o.Flags, config.Setting{From: "--max-jobs", Block: "jobs", Key: "max_jobs", Value: strconv.Itoa(c.Int("max-jobs"))})
	}
	return o
}

func (p Program) serve(c *cli.Context) error {
	texts := []string{"config"}
	for _, d := range config.Default().Doors() {
		texts = append(texts, d.Name)
	}
	for _, name := range texts {
		if c.IsSet(name) && c.String(name) == "" {
			return exit.Usagef("omit the flag for the default", "--%s must not be empty", name)
		}
	}
	level, err := flags.LogLevelOf(c)
	if err != nil {
		return err
	}
	log := p.Logger(level, c.Bool("json"))
	cfg, ds := config.Load(sources(c))
	stateDir, err := state.Dir()
	if err != nil {
		return err
	}
	checked := Check(cfg, ds, stateDir)
	if c.Bool("check") {
		return p.print(c, checked)
	}
	if err := p.Diagnostics(ds); err != nil {
		return err
	}
	if checked.Unwritable != "" {
		return exit.New(exit.Error, errors.New(checked.Unwritable), "")
	}
	if !checked.Valid {
		return exit.Usagef("waza serve --check prints all findings", "the configuration is invalid: %s", report.DiagnosticsSummary(ds.Errors()))
	}
	return p.run(c, cfg, log)
}

func (p Program) print(c *cli.Context, checked Checked) error {
	var err error
	if c.Bool("json") {
		err = p.Stdout.JSON(checked)
	} else {
		err = checked.Write(p.Stdout, terminal.Options(p.Stdout))
	}
	if err == nil && !checked.Valid {
		return exit.With(exit.Usage)
	}
	return err
}

func (p Program) run(c *cli.Context, cfg *config.Config, log *slog.Logger) error {
	dir, err := state.Dir()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.ContextThenExit(c.Context)
	defer stop()
	viewer := fleet.NewViewer(p.Fleet())
	defer viewer.Close()
	var recording *state.Recording
	defer func() {
		if recording != nil {
			recording.CloseExporters()
		}
	}()
	unhost := func() {}
	defer func() { unhost() }()
	return Main(ctx, Options{
		Config: cfg, StateDir: dir, Version: p.Version, Log: log, Fleet: viewer,
		Opened: func(dashboard func() (string, error)) {
			p.present(c, dashboard)
			unhost = fleet.Host(p.Fleet(), log)
		},
		NewRunner: func(o state.RecordOptions) (rn *runner.Runner, metrics *prometheus.Registry, err error) {
			if recording, err = p.Record(c, o); err != nil {
				return nil, nil, err
			}
			return recording.Runner, recording.Registry(), nil
		},
	})
}

// present prints or opens a link to the dashboard. The link admits its first user, so it goes to
// a terminal and never to a file or a log.
func (p Program) present(c *cli.Context, dashboard func() (string, error)) {
	if terminal.Of(p.Stdout) != nil {
		if url, err := dashboard(); err == nil {
			fmt.Fprintf(p.Stdout, "Dashboard: %s\n", url)
		}
	}
	if c.Bool("open") {
		if url, err := dashboard(); err == nil {
			openBrowser(url, p.Stderr)
		} else {
			fmt.Fprintf(p.Stderr, "waza: --open: %v\n", err)
		}
	}
}
