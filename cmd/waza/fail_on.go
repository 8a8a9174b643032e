package main

import (
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/runner/record"
)

// failOnUnmeasured is what --fail-on may be where a run's exit code is its result.
const failOnUnmeasured = "unmeasured"

func failOnFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "fail-on", Category: category, DefaultText: "missed thresholds alone",
		Usage: "exit with 1 where `WHAT` is seen as well: unmeasured, a metric with a threshold that could not be measured",
	}
}

func checkFailOn(c *cli.Context) error {
	if !c.IsSet("fail-on") {
		return nil
	}
	return flags.OneOf("fail-on", c.String("fail-on"), failOnUnmeasured)
}

// failOn is the exit code of a run with --fail-on what.
func failOn(what string, code int, sum *record.Summary) int {
	if code == exit.Passed && what == failOnUnmeasured && sum != nil && len(sum.Unmeasured()) > 0 {
		return exit.Failed
	}
	return code
}
