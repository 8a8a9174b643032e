package runflags

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/tally"
)

// The values of --fail-on.
const (
	Unmeasured = "unmeasured"
	Suspicious = "suspicious"
)

// FailOnValues returns the values of --fail-on.
func FailOnValues() []string { return []string{Unmeasured, Suspicious} }

// FailOnFlag returns --fail-on, for commands whose exit code is the result of a run.
func FailOnFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "fail-on", Category: category, DefaultText: "missed thresholds only",
		Usage: "exit with 1 also for `WHAT`: unmeasured, a metric with a threshold that could not be measured; " +
			"suspicious, a trial that passed with suspicious moves",
	}
}

// CheckFailOn rejects other values of --fail-on.
func CheckFailOn(c *cli.Context) error {
	if !c.IsSet("fail-on") {
		return nil
	}
	return flags.OneOf("fail-on", c.String("fail-on"), FailOnValues()...)
}

// FailOn returns the exit code of a run with --fail-on what; code is the one without it.
func FailOn(what string, code int, sum *record.Summary) int {
	if code != exit.Passed || sum == nil {
		return code
	}
	if what == Unmeasured && len(sum.Unmeasured()) > 0 || what == Suspicious && sum.Suspicious > 0 {
		return exit.Failed
	}
	return code
}

// The values of --undecided.
const (
	undecidedFail = "fail"
	undecidedPass = "pass"
)

// Undecided returns the values of --undecided.
func Undecided() []string { return []string{undecidedPass, undecidedFail} }

// undecidedFlag returns --undecided.
func undecidedFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "undecided", Category: category, DefaultText: undecidedPass,
		Usage: "with --baseline or --against, if the test shows neither a gain nor a loss by the skills, `WHAT` to do: pass or fail",
	}
}

// checkUndecided rejects other values of --undecided.
func checkUndecided(c *cli.Context) error {
	if !c.IsSet("undecided") {
		return nil
	}
	if !c.Bool("baseline") && !c.IsSet("against") {
		return exit.Usagef("--baseline compares the agent with and without skills", "--undecided requires --baseline or --against")
	}
	return flags.OneOf("undecided", c.String("undecided"), Undecided()...)
}

// A SuiteBaseline is the comparison of one suite with its baseline.
type SuiteBaseline struct {
	// Suite names the suite in sentences; empty if the command has only one.
	Suite string
	// Code is the exit code of the suite's run without --baseline.
	Code int
	// Result is nil if the run has no summary.
	Result *record.BaselineResult
}

// BaselineCode returns the exit code of a command with --baseline, and sentences about it for
// people. A suite has no sentence if the code does not depend on its baseline. A test decides,
// because the bare sign of a gain fails half of all runs of skills without an effect. The command
// fails if the skills of a suite harm, see [tally.OutcomesTogether]. If nothing is shown, or nothing
// could be compared, it fails only if undecided is fail.
func BaselineCode(undecided string, suites []SuiteBaseline) (code int, sentences []string) {
	results := make([]*record.BaselineResult, len(suites))
	for i, s := range suites {
		results[i] = s.Result
	}
	for i, outcome := range tally.OutcomesTogether(results) {
		own, sentence := suites[i].code(undecided, outcome, len(suites))
		code = max(code, own)
		if sentence != "" && suites[i].Suite != "" {
			sentence = suites[i].Suite + ": " + sentence
		}
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	return code, sentences
}

// code returns the exit code of a suite with the outcome that the suites of the command have
// together.
func (s SuiteBaseline) code(undecided string, outcome record.Outcome, suites int) (code int, sentence string) {
	if s.Code != exit.Passed || s.Result == nil {
		return s.Code, ""
	}
	flag, arm := "--baseline", s.Result.Arm
	if arm.HasSkills() {
		flag = "--against"
	}
	on := ""
	if s.Result.About != "" {
		on = " on " + s.Result.About.String()
	}
	what := "the comparison with the baseline does not show that " + report.EffectOf(arm, record.OutcomeBetter) + on
	switch {
	case outcome == record.OutcomeBetter:
		return s.Code, ""
	case outcome == record.OutcomeWorse:
		return exit.Failed, flag + " fails because " + report.EffectOf(arm, record.OutcomeWorse) + on
	case !s.Result.Measured:
		what = "the baseline was not measured"
	case outcome == record.OutcomeSame:
		what = "the skills make no difference beyond the margin"
	case s.Result.Outcome == record.OutcomeWorse:
		what = fmt.Sprintf("this suite alone shows that %s (p %s), because with %d suites in a command that can be chance",
			report.EffectOf(arm, record.OutcomeWorse)+on, figure.P(s.Result.P), suites)
	}
	if undecided == undecidedFail {
		return exit.Failed, flag + " fails because " + what + " (--undecided fail)"
	}
	return s.Code, flag + " passes although " + what + "; use --undecided fail to fail"
}
