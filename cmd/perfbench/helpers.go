package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// helpers are the programs that this program also is: floors, and agents of suites. The first
// argument selects one, so that nothing else needs to be built.
var helpers = map[string]func(args []string) error{
	"agent":          serveAgent,
	"floor-agent":    askAgent,
	"floor-commands": startCommands,
	"floor-output":   copyOutputs,
	"floor-sleeps":   sleepLikeWorkers,
	"floor-status":   answerBesideWork,
	"floor-trials":   writeTrials,
}

// runHelper runs a helper if the arguments name one.
func runHelper(args []string) bool {
	if len(args) < 2 || helpers[args[1]] == nil {
		return false
	}
	if err := helpers[args[1]](args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// helper runs a helper of this program, and returns the time that it uses.
func (b *bench) helper(ctx context.Context, args ...string) (used, error) {
	cmd := exec.CommandContext(ctx, b.self, args...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	err := cmd.Run()
	if err != nil {
		return used{}, fmt.Errorf("%v: %w", args, err)
	}
	return used{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(start)}, nil
}
