package runflags_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/runflags"
	"waza/runner/record"
)

// The suites of a command have one exit code. With more suites, some skill without an effect would
// seem to harm more often, so that the p-values are corrected for their number.
func TestBaselineCodeOfSeveralSuites(t *testing.T) {
	t.Parallel()
	suite := func(name string, outcome record.Outcome, p float64) runflags.SuiteBaseline {
		return runflags.SuiteBaseline{Suite: name, Result: &record.BaselineResult{Measured: true, Outcome: outcome, P: p}}
	}
	harms := suite("a", record.OutcomeWorse, 0.02)
	unknown := suite("b", record.OutcomeUndecided, 0.7)
	helps := suite("c", record.OutcomeBetter, 0.03)
	unmeasured := runflags.SuiteBaseline{Suite: "d", Result: &record.BaselineResult{Note: "no skills"}}

	code, sentences := runflags.BaselineCode("", []runflags.SuiteBaseline{harms})
	require.Equal(t, exit.Failed, code)
	require.Equal(t, []string{"a: --baseline fails because the skills harm"}, sentences)
	code, _ = runflags.BaselineCode("", []runflags.SuiteBaseline{harms, unknown})
	require.Equal(t, exit.Failed, code, "0.02 for two suites is 0.04")
	code, _ = runflags.BaselineCode("", []runflags.SuiteBaseline{harms, unknown, unmeasured})
	require.Equal(t, exit.Failed, code, "a suite without a measurement has no test")
	code, sentences = runflags.BaselineCode("", []runflags.SuiteBaseline{harms, unknown, helps})
	require.Equal(t, exit.Passed, code, "0.02 for three suites is 0.06")
	require.Equal(t, "a: --baseline passes although this suite alone shows that the skills harm (p 0.020), because "+
		"with 3 suites in a command that can be chance; use --undecided fail to fail",
		sentences[0])
	require.Len(t, sentences, 2)
	code, _ = runflags.BaselineCode("fail", []runflags.SuiteBaseline{harms, unknown, helps})
	require.Equal(t, exit.Failed, code)
	code, sentences = runflags.BaselineCode("fail", []runflags.SuiteBaseline{helps, helps, helps})
	require.Equal(t, exit.Passed, code, "each suite passed its own test")
	require.Empty(t, sentences)
	helps.Code = exit.Error
	code, _ = runflags.BaselineCode("", []runflags.SuiteBaseline{helps})
	require.Equal(t, exit.Error, code)
}
