package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/skills"
	"waza/cmd/waza/tokens"
)

// skillCommands returns the commands for skills.
func (e *env) skillCommands() []*cli.Command {
	o := skills.Options{Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr, NewRunner: e.newRunner, Now: e.now}
	return append(skills.Commands(o), tokens.Command(tokens.Options{Stdout: e.stdout, Stderr: e.stderr, Now: e.now}))
}
