// Command waza evaluates AI agents. It runs the tasks of a suite (eval.yaml) with an agent,
// grades the results and reports them. As `waza jsonrpc` it is a daemon for editors and scripts.
//
// This package owns what a process has once: its streams, signals and exit code, and the version.
// app.go lists the commands, each of which has a package.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/rpc/host"
	"waza/runner/attack/agent"
	"waza/runner/grader/assertion"
	"waza/runner/mcptools"
	"waza/runner/proc"
	"waza/runner/sandbox"
)

//go:generate go test -run "^TestCommandLineDocument$" . -update

func main() {
	assertion.Main()
	mcptools.Main()
	agent.Main()
	sandbox.Main()
	proc.UseGuard(guardProcess)
	os.Exit(execute(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// execute runs the whole program and returns its exit code, see [exit.Codes].
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// When the reader closes a pipe, the write fails and waza has time to clean up. Notify
	// rather than Ignore keeps the default handling in the programs that waza starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	streams := output.Streams{Stdin: stdin, Stdout: output.New(stdout), Stderr: stderr}
	app := newApp(streams, args)
	arranged, err := flags.Arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, arranged)
	}
	if err == nil {
		err = streams.Stdout.Err()
	}
	return exit.ForBisect(args, streams.Fail(err))
}

// protocolFiles returns the files that carry a protocol. From then on, only the daemon can write
// to the stdout of the process.
func protocolFiles(streams output.Streams) (in, out *os.File, err error) {
	in, inOK := streams.Stdin.(*os.File)
	out, outOK := streams.Stdout.Unwrap().(*os.File)
	if !inOK || !outOK {
		return nil, nil, errors.New("jsonrpc: stdin and stdout must be files of the operating system")
	}
	if out == os.Stdout {
		out, err = host.TakeStdout()
	}
	return in, out, err
}
