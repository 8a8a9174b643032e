package main

import (
	"fmt"
	"os"
)

// helpers are the programs that this program also is: floors, and agents of suites. The first
// argument selects one, so that nothing else needs to be built.
var helpers = map[string]func(args []string) error{
	"floor-trials": writeTrials,
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
