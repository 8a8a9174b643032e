package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/compare"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/sandbox"
)

// With a fleet, each worker uses the strongest sandbox of its machine. Each trial names its tier, also
// one that a later run reuses, and a comparison uses these tiers.
func TestTrialsNameTheirTier(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.agents = executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: "agent"}, Programs: true,
		Open: func(context.Context, executor.Settings) (executor.Executor, error) {
			return runnertest.Agent(says), nil
		},
	})
	s.work(2, "", nil)
	tier := sandbox.Detect().Tiers()[0]
	r := s.ownerOf(runner.Options{StateDir: t.TempDir(), Sandboxes: sandbox.Of})
	suite := fmt.Sprintf(twoTasks, 2)
	do := func(suite string, request record.Request) (record.Handle, runnertest.Result) {
		run := runnertest.Start(t, r, suite, request)
		<-run.Done()
		h, err := r.Catalog().Run(run.ID())
		require.NoError(t, err)
		return h, runnertest.ResultOf(t, run)
	}
	strong := s.request("")
	strong.Cache = true
	away, res := do(suite, strong)
	require.Equal(t, record.TierWorkers, away.Record().Sandbox.Tier)
	require.Equal(t, tier, res.Trial(t, "a", 1).Tier)
	tiers := []record.TierTrials{{Tier: tier, Trials: 4}}
	require.Equal(t, tiers, res.Summary.Tiers)
	require.Equal(t, tiers, res.Sandbox.Tiers)
	_, res = do(suite, strong)
	require.Equal(t, 4, res.Summary.TrialsCached)
	require.Equal(t, tier, res.Trial(t, "b", 2).Tier)
	require.Equal(t, tiers, res.Summary.Tiers)

	local, res := do(suite, record.Request{Cache: true})
	require.Zero(t, res.Summary.TrialsCached, "the tier is part of what a trial is reused for")
	require.Empty(t, res.Trial(t, "a", 1).Tier)
	require.Equal(t, tier, res.Sandbox.Tier)
	alike := runnertest.Compare(t, compare.Options{}, away, local).Comparisons[0]
	for _, d := range alike.Differences {
		require.NotEqual(t, "sandbox", d.What)
	}
	require.NotContains(t, fmt.Sprint(alike.Notes), "the execution of every task changed")
	bare, _ := do(strings.Replace(suite, "{executor", "{sandbox: off, executor", 1), record.Request{})
	require.Contains(t, runnertest.Compare(t, compare.Options{}, away, bare).Comparisons[0].Notes,
		compare.ComparisonNote{Text: fmt.Sprintf("the runs had different sandboxes: %s and off", tier)})
}
