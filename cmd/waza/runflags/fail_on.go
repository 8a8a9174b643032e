package runflags

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/runner/record"
)

// Unmeasured is the only value of --fail-on.
const Unmeasured = "unmeasured"

// FailOnFlag returns --fail-on, for commands whose exit code is the result of a run.
func FailOnFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "fail-on", Category: category, DefaultText: "missed thresholds only",
		Usage: "exit with 1 also for `WHAT`: unmeasured, a metric with a threshold that could not be measured",
	}
}

// CheckFailOn rejects other values of --fail-on.
func CheckFailOn(c *cli.Context) error {
	if !c.IsSet("fail-on") {
		return nil
	}
	return flags.OneOf("fail-on", c.String("fail-on"), Unmeasured)
}

// FailOn returns the exit code of a run with --fail-on what; code is the one without it.
func FailOn(what string, code int, sum *record.Summary) int {
	if code == exit.Passed && what == Unmeasured && sum != nil && len(sum.Unmeasured()) > 0 {
		return exit.Failed
	}
	return code
}

// BaselineCode returns the exit code of a run with --baseline: the skills must raise the pass
// rate if it was measured. The argument code is the exit code without the flag.
func BaselineCode(asked bool, code int, sum *record.Summary) int {
	if !asked || code != exit.Passed || sum == nil || sum.Baseline == nil || !sum.Baseline.Measured || sum.Baseline.PassRate == nil {
		return code
	}
	if sum.Baseline.PassRate.Gain <= 0 {
		return exit.Failed
	}
	return code
}
