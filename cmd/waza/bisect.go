package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
)

// exitSkip tells git bisect run that nothing can be said of a commit.
const exitSkip = 125

func bisectFlag() cli.Flag {
	return &cli.BoolFlag{Name: "bisect", Usage: "exit as git bisect run wants it: 125 in place of 2 and 3, where nothing can be said of a commit"}
}

// forBisect is the exit code in the form that --bisect asks for. It looks at the
// arguments themselves, for a call that is wrong must not make a commit bad.
func forBisect(args []string, code int) int {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if slices.Contains(args, "--bisect") && (code == exit.Usage || code == exit.Error) {
		return exitSkip
	}
	return code
}
