package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"waza/runner/proc"
)

// guardProcess is the process that cleans up when this one is killed: this
// program again. It gets neither stdout nor stderr, so that nobody who waits for
// the end of those waits for it.
func guardProcess() *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return &exec.Cmd{Path: path, Args: []string{"waza", "guard"}, Dir: "/"}
}

// guardCommand is the main program of that process. It ends when its input
// does, and by nothing gentler than SIGKILL: what ends waza must not end it.
func guardCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "guard", Hidden: true, SkipFlagParsing: true,
		Usage: "end what a waza that was killed has left running",
		Action: func(*cli.Context) error {
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
			proc.Guard(e.stdin)
			return nil
		},
	}
}
