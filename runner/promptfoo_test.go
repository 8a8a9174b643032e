package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Each assertion that the dialect promptfoo translates passes and fails as in its definition.
func TestPromptfooAssertions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, value, passes, fails string }{
		{"contains", "a.c", "xa.cx", "A.C abc"},
		{"not-contains", "a.c", "A.C abc", "xa.cx"},
		{"icontains", "Abc", "xaBCx", "ab"},
		{"not-icontains", "Abc", "ab", "xaBCx"},
		{"contains-any", "[a.c, d]", "xd", "abc D"},
		{"not-contains-any", "[a.c, d]", "abc D", "xd"},
		{"icontains-any", "[a.c, d]", "A.C", "abc"},
		{"not-icontains-any", "[a.c, d]", "abc", "A.C"},
		{"equals", "a|b", "a|b", "a"},
		{"not-equals", "a|b", "a", "a|b"},
		{"starts-with", "a|b", "a|bc", "b"},
		{"not-starts-with", "a|b", "b", "a|bc"},
		{"contains", "7", "17", "1"},
		{"contains", "'{{ word }}'", "is {{x}}", "is x"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			suite := fmt.Sprintf("-- eval.yaml --\ndescription: d\nproviders: [openai:gpt-4o]\n"+
				"prompts: ['Say {{answer}}']\ntests:\n"+
				"  - {description: good, vars: {answer: %q, word: '{{x}}'}, assert: [{type: %s, value: %s}]}\n"+
				"  - {description: bad, vars: {answer: %q, word: '{{x}}'}, assert: [{type: %s, value: %s}]}\n",
				c.passes, c.kind, c.value, c.fails, c.kind, c.value)
			res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent"},
				func(_ context.Context, trial *executor.Trial) (string, error) {
					return strings.TrimPrefix(trial.Prompt, "Say "), nil
				})
			verdicts := map[string]string{}
			for _, task := range res.Tasks {
				verdicts[task.ID] = string(task.Verdict)
			}
			require.Equal(t, map[string]string{"good": "passed", "bad": "failed"}, verdicts)
		})
	}
}
