package main

import (
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/agent"
	"waza/cmd/waza/agents"
	"waza/cmd/waza/attack"
	"waza/cmd/waza/browseragent"
	"waza/cmd/waza/compare"
	"waza/cmd/waza/complete"
	"waza/cmd/waza/convert"
	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/fleet"
	"waza/cmd/waza/grade"
	"waza/cmd/waza/help"
	"waza/cmd/waza/history"
	"waza/cmd/waza/importing"
	"waza/cmd/waza/jsonrpc"
	"waza/cmd/waza/list"
	"waza/cmd/waza/mcp"
	"waza/cmd/waza/output"
	"waza/cmd/waza/plan"
	"waza/cmd/waza/question"
	"waza/cmd/waza/review"
	"waza/cmd/waza/run"
	"waza/cmd/waza/runs"
	"waza/cmd/waza/sandbox"
	"waza/cmd/waza/scaffold"
	"waza/cmd/waza/schema"
	"waza/cmd/waza/send"
	"waza/cmd/waza/serve"
	"waza/cmd/waza/skills"
	"waza/cmd/waza/state"
	"waza/cmd/waza/subset"
	"waza/cmd/waza/tasks"
	"waza/cmd/waza/token"
	"waza/cmd/waza/tokens"
	"waza/cmd/waza/validate"
	"waza/runner/executor/remote"
	"waza/runner/routing"
)

// newApp returns the program with the command that the arguments name. Without such a command, or
// for one that lists commands, it has all of them.
func newApp(streams output.Streams, args []string) *cli.App {
	version := buildVersion()
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
		Writer:                    streams.Stdout,
		ErrWriter:                 streams.Stderr,
		Reader:                    streams.Stdin,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {}, // execute handles it
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Usage: "print the version, like `waza version`"},
		},
		Action: func(c *cli.Context) error { return noCommand(c, streams) },
	}
	app.Commands = named(commands(state.Opener{Streams: streams, Version: version.Version}, version), args)
	app.Setup() // once, before the names that it sets are replaced
	prepare(app, streams.Stdout)
	return app
}

// named returns the command that the first argument names, and otherwise all commands. Preparing a
// command sorts and formats its flags, so each start prepares only the command that it runs.
func named(all []*cli.Command, args []string) []*cli.Command {
	if len(args) < 2 {
		return all
	}
	i := slices.IndexFunc(all, func(c *cli.Command) bool { return c.HasName(args[1]) })
	if i < 0 || slices.Contains([]string{help.Name, complete.Name}, all[i].Name) {
		return all
	}
	return all[i : i+1]
}

// commands lists all commands in the order of the help.
func commands(opener state.Opener, version versionInfo) []*cli.Command {
	streams, reader := opener.Streams, opener.Reader()
	asker := question.Asker{Reader: reader}
	scaffolds := scaffold.Options{Asker: asker, Commit: version.commit()}
	running := run.Options{Opener: opener}
	daemon := jsonrpc.Options{Opener: opener, Files: func() (in, out *os.File, err error) { return protocolFiles(streams) }}
	return slices.Concat([]*cli.Command{
		scaffold.Init(scaffolds), scaffold.New(scaffolds), scaffold.Suggest(scaffolds),
		run.Command(running), run.DecideCommand(running),
		validate.Command(validate.Options{Reader: reader}),
		attack.Command(attack.Options{Streams: streams}),
		list.Command(streams),
		convert.Command(streams),
		tasks.Command(tasks.Options{Reader: reader}),
		plan.Command(plan.Options{Reader: reader}),
		runs.Command(runs.Options{Reader: reader, Resume: run.ResumeCommand(running)}),
		importing.Command(importing.Options{Stdout: reader.Stdout, Runner: reader.Runner}),
		compare.Command(compare.Options{Reader: reader}),
		history.Command(history.Options{Reader: reader}),
		subset.Command(subset.Options{Reader: reader}),
		grade.Command(grade.Options{Opener: opener}),
		review.Command(review.Options{Reader: reader}),
		jsonrpc.Command(daemon), jsonrpc.LSPCommand(daemon),
		mcp.Command(mcp.Options{Opener: opener, Files: daemon.Files}),
		serve.Command(serve.Program{Opener: opener}),
		token.Command(token.Options{Streams: streams}),
		agents.Command(agents.Options{Stdout: streams.Stdout, Stderr: streams.Stderr, Connect: func() (remote.Directory, func()) {
			server := state.Server()
			return server, server.Close
		}}),
		agent.Command(agent.Options{Streams: streams}), browseragent.Command(browseragent.Options{Streams: streams}),
		send.Command(send.Options{Stdin: streams.Stdin, Stdout: streams.Stdout, Connect: func() (routing.Messenger, func()) {
			server := state.Server()
			return server.Messenger(), server.Close
		}}),
		fleet.WorkerCommand(opener.Fleet()), fleet.FleetCommand(opener.Fleet()),
		schema.Command(streams.Stdout), complete.ScriptCommand(streams.Stdout), version.command(streams.Stdout),
		help.Command(streams.Stdout), guardCommand(streams.Stdin), complete.Command(streams.Stdout),
	}, skills.Commands(skills.Options{Asker: asker}), []*cli.Command{
		tokens.Command(tokens.Options{Streams: streams}), sandbox.Command(sandbox.Options{Streams: streams}),
	})
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
func noCommand(c *cli.Context, streams output.Streams) error {
	if c.Bool("version") {
		return buildVersion().print(streams.Stdout, false)
	}
	if name := c.Args().First(); name != "" {
		return flags.UnknownCommand("waza", name, c.App.Commands)
	}
	help.WriteApp(streams.Stderr, c.App)
	return exit.With(exit.Usage)
}
