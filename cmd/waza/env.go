package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/eval/decode"
	"waza/runner"
	"waza/runner/executor/remote"
	"waza/runner/plan"
	"waza/runner/report"
	"waza/runner/report/formats"
)

// env is what all commands share. What goes where:
//
//   - stdout gets what was asked for: a table, a document, the protocol. With
//     --json it gets JSON and nothing else.
//   - stderr is for people: progress, findings, logs, errors.
type env struct {
	stdin  io.Reader
	stdout *output.Stdout
	stderr io.Writer
	now    func() time.Time
}

func newEnv(stdin io.Reader, stdout, stderr io.Writer) *env {
	return &env{stdin: stdin, stdout: output.New(stdout), stderr: stderr, now: time.Now}
}

// do makes a command's action of a function over the environment.
func (e *env) do(f func(*env, *cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) error { return f(e, c) }
}

// newRunner makes the runner of commands that only look; what it has to say
// outside of a run's own events goes to stderr.
func (e *env) newRunner() (*runner.Runner, error) {
	return runner.New(e.runnerOptions())
}

// runnerOptions reach remote agents by the server of the state directory, to which
// nothing connects before a suite needs it.
func (e *env) runnerOptions() runner.Options {
	return e.runnerOptionsWith(serverLink(), e.logger(slog.LevelWarn, false))
}

// runnerOptionsWith are those of all runners of the program. hub has the remote agents.
func (e *env) runnerOptionsWith(hub remote.Hub, log *slog.Logger) runner.Options {
	return runner.Options{Reports: formats.Always(), Executors: plan.Executors.With(remote.New(hub)), Logger: log}
}

func (e *env) logger(level slog.Level, json bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(e.stderr, o))
	}
	return slog.New(slog.NewTextHandler(e.stderr, o))
}

// printDiagnostics prints findings to stderr, where they are beside the point
// of the command.
func (e *env) printDiagnostics(ds decode.Diagnostics) error {
	return report.Diagnostics(e.stderr, ds, terminal.Options(e.stderr))
}

// fail says what went wrong, if anything did, and returns the exit code.
func (e *env) fail(err error) int {
	if err == nil {
		return exit.Passed
	}
	pr := exit.ProblemOf(err)
	if errors.Is(err, output.ErrBrokenPipe) && errors.Is(e.stdout.Err(), output.ErrBrokenPipe) {
		return exit.Pipe // the reader has what it wanted
	}
	if pr.Err != nil {
		fmt.Fprintf(e.stderr, "waza: %s\n", output.Clean(pr.Err.Error()))
		if pr.Hint != "" {
			fmt.Fprintf(e.stderr, "hint: %s\n", output.Clean(pr.Hint))
		}
	}
	return pr.Code
}
