package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/counting"
	"waza/cmd/waza/skills"
)

// skillCommands returns the commands for skills.
func skillCommands(e *env) []*cli.Command {
	o := skills.Options{Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr, NewRunner: e.newRunner, Now: e.now}
	return append(skills.Commands(o), counting.Command(counting.Options{Stdout: e.stdout, Stderr: e.stderr, Now: e.now}))
}
