package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/complete"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/schema"
)

// run executes the whole program and returns its exit code, see [exit.Codes].
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// When the reader closes a pipe, the write fails and waza has time to clean up. Notify
	// rather than Ignore keeps the default handling in the programs that waza starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	e := newEnv(stdin, stdout, stderr)
	app := e.app()
	arranged, err := flags.Arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, arranged)
	}
	if err == nil {
		err = e.stdout.Err()
	}
	return forBisect(args, e.fail(err))
}

func (e *env) app() *cli.App {
	app := &cli.App{
		Name:     "waza",
		HelpName: "waza",
		Usage:    "evaluate AI agents with suites of tasks",
		Description: `A suite is a file named eval.yaml with tasks and the graders for their outcome.
waza lets an agent do each task, grades the outcome, and reports the results.

Examples:
  waza init demo                     create a first project
  waza run evals/demo/eval.yaml      run a suite
  waza validate                      check every suite below this directory
  waza jsonrpc                       serve an editor on stdin and stdout`,
		HideHelp:                  true,
		HideVersion:               true,
		Writer:                    e.stdout,
		ErrWriter:                 e.stderr,
		Reader:                    e.stdin,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {}, // run handles it
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Usage: "print the version, like `waza version`"},
		},
		Action: e.noCommand,
	}
	app.Commands = []*cli.Command{
		e.runCommand(), e.validateCommand(), e.listCommand(), e.tasksCommand(),
		e.runsCommand(), e.compareCommand(), e.historyCommand(), e.gradeCommand(), e.reviewCommand(),
		e.jsonrpcCommand(), e.lspCommand(), e.mcpCommand(), e.serveCommand(), e.tokenCommand(), e.agentsCommand(),
		e.agentCommand(), e.browserAgentCommand(), e.sendCommand(), e.workerCommand(), e.fleetCommand(),
		schema.Command(e.stdout), complete.ScriptCommand(e.stdout), e.versionCommand(), e.helpCommand(),
		e.guardCommand(), e.completeCommand(),
	}
	app.Commands = append(e.scaffoldCommands(), app.Commands...)
	app.Commands = append(app.Commands, e.skillCommands()...)
	app.Setup() // once, before the names that it sets are replaced
	prepare(app, e.stdout)
	return app
}

// prepare gives every command --help and waza's own error messages.
func prepare(app *cli.App, stdout io.Writer) {
	app.Flags = append(app.Flags, helpFlag())
	app.OnUsageError = flags.UsageError(app.Name)
	app.Action = orHelp(app.Action, func() { help.WriteApp(stdout, app) })
	var each func([]*cli.Command, string)
	each = func(commands []*cli.Command, parent string) {
		for _, c := range commands {
			name := parent + " " + c.Name
			c.HelpName = name
			c.HideHelp = true
			c.OnUsageError = flags.UsageError(name)
			if !c.SkipFlagParsing {
				c.Flags = append(c.Flags, helpFlag())
				c.Action = orHelp(c.Action, func() { help.WriteCommand(stdout, c) })
			}
			each(c.Subcommands, name)
		}
	}
	each(app.Commands, app.Name)
}

func helpFlag() cli.Flag {
	return &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print this help"}
}

func orHelp(action cli.ActionFunc, help func()) cli.ActionFunc {
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

// noCommand handles a call that names no command or an unknown one.
func (e *env) noCommand(c *cli.Context) error {
	if c.Bool("version") {
		return e.printVersion(false)
	}
	if name := c.Args().First(); name != "" {
		return flags.UnknownCommand("waza", name, c.App.Commands)
	}
	help.WriteApp(e.stderr, c.App)
	return exit.With(exit.Usage)
}
