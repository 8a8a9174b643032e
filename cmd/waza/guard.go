package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"waza/runner/proc"
)

// guardProcess returns a command for the process that cleans up when this one is killed: this
// program again. It inherits neither stdout nor stderr, so that readers of those see their end
// when this process ends.
func guardProcess() *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return &exec.Cmd{Path: path, Args: []string{"waza", "guard"}, Dir: "/"}
}

// guardCommand is the main program of that process. It ends when its input ends. It ignores
// every signal but SIGKILL, so that a signal to waza does not end it.
func guardCommand(stdin io.Reader) *cli.Command {
	return &cli.Command{
		Name: "guard", Hidden: true, SkipFlagParsing: true,
		Usage: "end the processes that a killed waza left running",
		Action: func(*cli.Context) error {
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
			proc.Guard(stdin)
			return nil
		},
	}
}
