package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"waza/eval"
	"waza/runner"
	"waza/runner/report"
)

// program is one call of waza. What goes where:
//
//   - stdout gets what was asked for: a table, a document, the protocol. With
//     --json it gets JSON and nothing else.
//   - stderr is for people: progress, findings, logs, errors.
type program struct {
	ctx    context.Context
	stdin  io.Reader
	stdout *output
	stderr io.Writer
	app    *cli.App
}

// run is the whole program. It returns its exit code, see [exitCodes].
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// A pipe that is closed at the other end is an error of the write to it,
	// so that there is time to clean up. Being notified rather than ignoring
	// keeps the default for the programs that are started.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	p := &program{ctx: ctx, stdin: stdin, stdout: &output{w: stdout}, stderr: stderr}
	p.app = p.newApp()
	arranged, err := arrange(p.app, args)
	if err == nil {
		err = p.app.RunContext(ctx, arranged)
	}
	if err == nil {
		err = p.stdout.err
	}
	return forBisect(args, p.fail(err))
}

func (p *program) newApp() *cli.App {
	app := &cli.App{
		Name:     "waza",
		HelpName: "waza",
		Usage:    "evaluate AI agents with suites of tasks",
		Description: `A suite is a file named eval.yaml that holds tasks and says how the outcome is
graded. waza lets an agent do each task, grades what came out, and tells.

Examples:
  waza run evals/demo/eval.yaml      run a suite
  waza validate                      check every suite below this directory
  waza jsonrpc                       serve an editor on stdin and stdout`,
		HideHelp:                  true,
		HideVersion:               true,
		Writer:                    p.stdout,
		ErrWriter:                 p.stderr,
		Reader:                    p.stdin,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {}, // run does it
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Usage: "print the version, as `waza version` does"},
		},
		Action: p.noCommand,
	}
	app.Commands = []*cli.Command{
		p.runCommand(), p.validateCommand(), p.listCommand(), p.tasksCommand(),
		p.runsCommand(), p.compareCommand(), p.historyCommand(), p.gradeCommand(), p.reviewCommand(),
		p.jsonrpcCommand(), p.lspCommand(),
		p.schemaCommand(), p.completionCommand(), p.versionCommand(), p.helpCommand(),
		p.guardCommand(), p.completeCommand(),
	}
	app.Setup() // once, and before the names it gives are replaced
	p.prepare(app)
	return app
}

// prepare gives every command what all have: --help, and errors of our own.
func (p *program) prepare(app *cli.App) {
	app.Flags = append(app.Flags, helpFlag())
	app.OnUsageError = usageOf(app.Name)
	app.Action = p.orHelp(app.Action, func() { p.writeAppHelp(p.stdout) })
	var each func([]*cli.Command, string)
	each = func(commands []*cli.Command, parent string) {
		for _, c := range commands {
			name := parent + " " + c.Name
			c.HelpName = name
			c.HideHelp = true
			c.OnUsageError = usageOf(name)
			if !c.SkipFlagParsing {
				c.Flags = append(c.Flags, helpFlag())
				c.Action = p.orHelp(c.Action, func() { p.writeCommandHelp(p.stdout, c) })
			}
			each(c.Subcommands, name)
		}
	}
	each(app.Commands, app.Name)
}

func helpFlag() cli.Flag {
	return &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print this help"}
}

func (p *program) orHelp(action cli.ActionFunc, help func()) cli.ActionFunc {
	return func(c *cli.Context) error {
		// The action reports an argument where a command is expected.
		commandExpected := c.Command == nil || len(c.Command.Subcommands) > 0 || c.Command.Name == c.App.Name
		if c.Bool("help") && (!commandExpected || c.NArg() == 0) {
			help()
			return nil
		}
		return action(c)
	}
}

// noCommand is what waza does when no command is named, or one that is not there.
func (p *program) noCommand(c *cli.Context) error {
	if c.Bool("version") {
		return p.version(false)
	}
	if name := c.Args().First(); name != "" {
		return p.unknownCommand("waza", name, p.app.Commands)
	}
	p.writeAppHelp(p.stderr)
	return &problem{code: exitUsage}
}

func (p *program) unknownCommand(parent, name string, commands []*cli.Command) error {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	hint := fmt.Sprintf("%s --help lists the commands", parent)
	if near := eval.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s %s?", parent, near)
	} else if isFile(name) && parent == "waza" {
		hint = fmt.Sprintf("to run that suite: waza run %s", name)
	}
	return usage(hint, "unknown command %q", name)
}

// newRunner makes the runner of commands that only look; what it has to say
// outside of a run's own events goes to stderr.
func (p *program) newRunner() (*runner.Runner, error) {
	return runner.New(p.runnerOptions())
}

func (p *program) runnerOptions() runner.Options {
	return runner.Options{Reports: report.Always(), Logger: p.logger(slog.LevelWarn, false)}
}

func (p *program) logger(level slog.Level, json bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(p.stderr, o))
	}
	return slog.New(slog.NewTextHandler(p.stderr, o))
}

// most checks that there are at most so many arguments.
func most(c *cli.Context, n int) error {
	if c.NArg() <= n {
		return nil
	}
	return usage(fmt.Sprintf("%s --help tells how it is called", c.Command.HelpName),
		"unexpected argument %q", c.Args().Get(n))
}

// jsonFlag is the flag that every command has.
func jsonFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "json", Usage: usage} }

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// oneOf checks the value of a flag that takes one of a few words.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return usage(fmt.Sprintf("known are %s", words), "--%s: unknown value %q", flag, value)
}
