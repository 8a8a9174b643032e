package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
)

// exitSkip makes git bisect run skip a commit that cannot be judged.
const exitSkip = 125

func bisectFlag() cli.Flag {
	return &cli.BoolFlag{Name: "bisect", Usage: "exit with the codes of git bisect run: 125, which skips the commit, in place of 2 and 3"}
}

// forBisect maps an exit code to the one that --bisect asks for. It reads the raw arguments,
// because a call with wrong usage must not make a commit bad either.
func forBisect(args []string, code int) int {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if slices.Contains(args, "--bisect") && (code == exit.Usage || code == exit.Error) {
		return exitSkip
	}
	return code
}
