// Command waza evaluates AI agents. It runs the tasks of a suite (eval.yaml) with an agent,
// grades the results and reports them. As `waza jsonrpc` it is a daemon for editors and scripts.
//
// The program is the function [run]; app.go holds its commands, and each command has a file of
// its own.
package main

import (
	"context"
	"os"

	"waza/runner/grader/assertion"
	"waza/runner/mcptools"
	"waza/runner/proc"
)

//go:generate go test -run "^TestCommandLineDocument$" . -update

func main() {
	assertion.Main()
	mcptools.Main()
	proc.UseGuard(guardProcess)
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}
