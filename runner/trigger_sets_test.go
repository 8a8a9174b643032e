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

// A query passes by the rule of run_eval.py: with should_trigger if the skill is used in at least the
// share threshold of the trials, without it if the share is below. The agent of this test uses the
// skill in as many trials as the query says.
func TestTriggerSets(t *testing.T) {
	t.Parallel()
	const of = "%d of 4" // a query
	for _, c := range []struct {
		threshold string
		least     int // uses of 4 trials that trigger
	}{{"", 2}, {`"pass_threshold": 0.25, `, 1}, {`"threshold": 0.75, `, 3}, {`"threshold": 1, `, 4}} {
		t.Run(c.threshold, func(t *testing.T) {
			t.Parallel()
			var entries []string
			want := map[string]string{}
			for uses := range 5 {
				entries = append(entries, fmt.Sprintf(`{"query": "use %s", "should_trigger": true}`, fmt.Sprintf(of, uses)),
					fmt.Sprintf(`{"query": "avoid %s", "shouldTrigger": false}`, fmt.Sprintf(of, uses)))
				use, avoid := "passed", "failed"
				if uses < c.least {
					use, avoid = "failed", "passed"
				}
				want[fmt.Sprintf("should_trigger#%d", uses+1)], want[fmt.Sprintf("should_not_trigger#%d", uses+1)] = use, avoid
			}
			suite := fmt.Sprintf("-- eval.yaml --\n{%s\"skill_name\": \"greeter\", \"cases\": [%s]}\n", c.threshold, strings.Join(entries, ", "))
			res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 4},
				func(_ context.Context, trial *executor.Trial) (string, error) {
					var verb string
					var uses int
					if _, err := fmt.Sscanf(trial.Prompt, "%s "+of, &verb, &uses); err != nil {
						return "", err
					}
					if trial.Num <= uses {
						trial.Transcript.Skill("greeter")
					}
					return "done", nil
				})
			got := map[string]string{}
			for _, task := range res.Tasks {
				got[task.ID] = string(task.Verdict)
			}
			require.Equal(t, want, got)
		})
	}
}
