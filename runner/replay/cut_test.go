package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// An agent that printed more than is kept passed not_contains with the forbidden word behind the
// cut. Grading the recorded trial again had the same fault.
func TestForbiddenWordBehindTheCut(t *testing.T) {
	t.Parallel()
	files := `
-- agent.sh --
head -c 4200000 /dev/zero | tr '\0' x; echo forbidden
-- eval.yaml --
name: cut
config: {executor: command, command: [sh, agent.sh], retry_errors: 0}
tasks:
  - id: absent
    prompt: x
    graders: [{type: text, config: {not_contains: [forbidden]}}]
  - id: present
    prompt: x
    graders: [{type: text, config: {contains: [xxx]}}]
`
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, files, record.Request{})
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	require.Contains(t, runnertest.Logs(events),
		"warning task absent, trial 1: the output was cut after 4194304 bytes, and the rest (5706 bytes) was dropped")
	check := func() {
		h, err := r.Catalog().Run(live.ID())
		require.NoError(t, err)
		res := runnertest.ResultOf(t, h)
		require.Equal(t, record.Errored, res.Task(t, "absent").Verdict)
		require.Contains(t, res.Trial(t, "absent", 1).Error, "not_contains forbidden cannot be decided: the output was cut")
		require.Equal(t, record.Passed, res.Task(t, "present").Verdict)
		require.Len(t, res.Trial(t, "present", 1).Output, executor.MaxOutputBytes)
		require.EqualValues(t, 5706, res.Trial(t, "present", 1).OutputDropped)
	}
	check()
	_, err := r.Amender().Grade(t.Context(), live.ID(), runnertest.Load(t, r, files), regrade.GradeOptions{})
	require.NoError(t, err)
	check()
}
