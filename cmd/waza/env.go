package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/fleet"
	"waza/cmd/waza/output"
	"waza/cmd/waza/serve"
	"waza/cmd/waza/terminal"
	"waza/eval/decode"
	"waza/rpc/gateway/link"
	"waza/runner"
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/executor/router"
	"waza/runner/plan"
	"waza/runner/report"
	"waza/runner/report/formats"
)

// env is the environment that all commands share. Output is split as follows:
//
//   - stdout gets the result: a table, a document, the protocol. With --json it
//     gets JSON and nothing else.
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

// newRunner makes the runner of read-only commands. Messages that are not events of a run go to
// stderr.
func (e *env) newRunner() (*runner.Runner, error) {
	rn, err := runner.New(e.runnerOptions())
	if err == nil {
		e.warnExposed(rn)
	}
	return rn, err
}

// warnExposed reports that other users can reach the state directory.
func (e *env) warnExposed(rn *runner.Runner) {
	if exposed := rn.Catalog().Store.Exposure(); exposed != "" {
		fmt.Fprintf(e.stderr, "waza: warning: %s\n", output.Clean(exposed))
	}
}

// runnerOptions returns options that reach agents and browsers through the server of the state
// directory. Nothing connects to it before a suite needs it.
func (e *env) runnerOptions() runner.Options {
	return e.runnerOptionsWith(hubsOf(serverLink()), e.logger(slog.LevelWarn, false))
}

// hubsOf returns hubs that reach the clients of a server in another process.
func hubsOf(c *link.Client) serve.Hubs {
	return serve.Hubs{Agents: c, Browsers: c.Browsers(), Messenger: c.Messenger()}
}

// runnerOptionsWith returns the options common to all runners of the program.
func (e *env) runnerOptionsWith(hubs serve.Hubs, log *slog.Logger) runner.Options {
	return runner.Options{
		Reports:   formats.Always(),
		Executors: plan.Executors.With(remote.New(hubs.Agents), browser.New(hubs.Browsers), router.New(hubs.Messenger)),
		Fleet:     fleet.Backend(e.fleetProgram(), log), Logger: log,
	}
}

func (e *env) logger(level slog.Level, json bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(e.stderr, o))
	}
	return slog.New(slog.NewTextHandler(e.stderr, o))
}

// printDiagnostics prints findings to stderr, for commands whose result is something else.
func (e *env) printDiagnostics(ds decode.Diagnostics) error {
	return report.Diagnostics(e.stderr, ds, terminal.Options(e.stderr))
}

// fail prints err, if it is not nil, and returns the exit code.
func (e *env) fail(err error) int {
	if err == nil {
		return exit.Passed
	}
	pr := exit.ProblemOf(err)
	if errors.Is(err, output.ErrBrokenPipe) && errors.Is(e.stdout.Err(), output.ErrBrokenPipe) {
		return exit.Pipe // the reader closed the pipe
	}
	if pr.Err != nil {
		fmt.Fprintf(e.stderr, "waza: %s\n", output.Clean(pr.Err.Error()))
		if pr.Hint != "" {
			fmt.Fprintf(e.stderr, "hint: %s\n", output.Clean(pr.Hint))
		}
	}
	return pr.Code
}
