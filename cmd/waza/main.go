// Command waza evaluates AI agents: it runs the tasks of a suite (eval.yaml) with
// an agent, grades what came out, and tells. As `waza jsonrpc` it is a daemon
// that editors and scripts talk to.
//
// The program is the function [run]; app.go holds its commands, and each
// command is a file of its own.
package main

import (
	"context"
	"os"

	"waza/runner/grader/assertion"
	"waza/runner/proc"
)

//go:generate go test -run ^TestDocuments$ . -update

func main() {
	assertion.Main()
	proc.UseGuard(guardProcess)
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}
