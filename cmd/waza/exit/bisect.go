package exit

import (
	"slices"

	"github.com/urfave/cli/v2"
)

// skip makes git bisect run skip a commit that cannot be judged.
const skip = 125

// BisectFlag returns the flag --bisect.
func BisectFlag() cli.Flag {
	return &cli.BoolFlag{Name: "bisect", Usage: "exit with the codes of git bisect run: 125, which skips the commit, in place of 2 and 3"}
}

// ForBisect maps an exit code to the one that --bisect asks for. It reads the raw arguments,
// because a call with wrong usage must not make a commit bad either.
func ForBisect(args []string, code int) int {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if slices.Contains(args, "--bisect") && (code == Usage || code == Error) {
		return skip
	}
	return code
}
