package runner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Graders score the work of an agent that reached its own limit. Other limits end the trial.
func TestAgentTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys, file string
		verdict    record.Verdict
		fault      error // after the end of the agent
	}{
		"done in time":   {"agent_timeout_seconds: 0.05", "answer.txt", record.Passed, nil},
		"nothing done":   {"agent_timeout_seconds: 0.05", "other.txt", record.Failed, nil},
		"of the trial":   {"timeout_seconds: 0.05", "answer.txt", record.TimedOut, nil},
		"the trial wins": {"timeout_seconds: 0.05, agent_timeout_seconds: 9", "answer.txt", record.TimedOut, nil},
		"another fault":  {"agent_timeout_seconds: 0.05", "answer.txt", record.Errored, errors.New("no space left")},
		"files are lost": {"agent_timeout_seconds: 0.05", "answer.txt", record.Errored, &proc.LostError{Err: context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runnertest.AgentRunner(t, t.TempDir(), func(ctx context.Context, trial *executor.Trial) (string, error) {
				dir, err := trial.Dir()
				if err != nil {
					return "", err
				}
				if err := os.WriteFile(filepath.Join(dir, c.file), nil, 0o600); err != nil {
					return "", err
				}
				<-ctx.Done()
				return "", cmp.Or(c.fault, context.Cause(ctx))
			})
			suite := filepath.Join(t.TempDir(), "eval.yaml")
			require.NoError(t, os.WriteFile(suite, []byte("name: slow\nconfig: {executor: agent}\ntasks:\n"+
				"  - {id: a, prompt: Write answer.txt., "+c.keys+", graders: [{type: file, config: {must_exist: [answer.txt]}}]}\n"), 0o600))
			p, err := r.Planner().Prepare(t.Context(), suite, record.Request{}, plan.PrepareOptions{})
			require.NoError(t, err)
			require.Empty(t, p.All().Errors())
			run, err := r.Start(p.Plan)
			require.NoError(t, err)
			<-run.Done()
			trial := runnertest.ResultOf(t, run).Trial(t, "a", 1)
			require.Equal(t, c.verdict, trial.Verdict, trial.Error)
			if c.verdict != record.TimedOut {
				require.Equal(t, "the agent was ended after 50ms, its agent_timeout_seconds", trial.Transcript[len(trial.Transcript)-1].Text)
			}
		})
	}
}

// The graders of a checkpoint score the work of an agent that reached its limit for that turn, and the next
// prompt follows. The time of graders does not count.
func TestAgentTimeoutOfTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   error // after the end of the agent; nil for the cause
		verdict record.Verdict
		passed  []bool
		prompts int
	}{
		"limit":         {nil, record.Passed, []bool{true, true, false}, 3},
		"another fault": {errors.New("no space left"), record.Errored, nil, 2}, // in two attempts
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompts := 0
			res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: turns
config: {executor: agent}
tasks:
  - id: a
    prompt: one
    follow_up_prompts: [two, three]
    checkpoints:
      - {after_turn: 1, agent_timeout_seconds: 0.05, graders: [{type: file, optional: true, config: {must_exist: ["1.txt"]}}]}
      - {after_turn: 2, agent_timeout_seconds: 600, graders: [{type: file, optional: true, config: {must_exist: ["2.txt"]}}]}
      - {after_turn: 3, graders: [{type: file, optional: true, config: {must_exist: [other.txt]}}]}
    graders: [{type: file, config: {must_exist: ["3.txt"]}}]
`, record.Request{}, func(ctx context.Context, trial *executor.Trial) (string, error) {
				dir, err := trial.Dir()
				if err != nil {
					return "", err
				}
				return "done", trial.Converse(ctx, func(ctx context.Context, num int, _ string) (executor.Outcome, error) {
					prompts++
					err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", num)), nil, 0o600)
					if num == 1 && err == nil {
						<-ctx.Done()
						err = cmp.Or(c.fault, context.Cause(ctx))
					}
					return executor.Outcome{Output: "done"}, err
				})
			})
			trial := res.Trial(t, "a", 1)
			require.Equal(t, c.verdict, trial.Verdict, trial.Error)
			require.Equal(t, "the agent was ended after 50ms, its agent_timeout_seconds of turn 1", trial.Transcript[0].Text)
			require.Equal(t, c.prompts, prompts)
			var passed []bool
			for _, g := range trial.Graders {
				if g.AfterTurn > 0 {
					passed = append(passed, g.Passed)
				}
			}
			require.Equal(t, c.passed, passed)
		})
	}
}
