package compare_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner"
	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Runs with different sandboxes are compared with a warning, also from files. Older records have no
// sandbox, which is a difference without a warning.
func TestCompareSandboxes(t *testing.T) {
	t.Parallel()
	of := func(tier record.Tier) record.Handle {
		o := runner.Options{StateDir: t.TempDir()}
		if tier != "" {
			o.Sandboxes = func(s surroundings.Sandbox) (*record.Sandbox, error) {
				return &record.Sandbox{Mode: s.Mode, Tier: tier, Network: s.Network, Limits: s.Limits}, nil
			}
		}
		r, err := runner.New(o)
		require.NoError(t, err)
		run := runnertest.Start(t, r, "-- eval.yaml --\nname: n\nconfig: {executor: command, command: echo}\ntasks: [{id: a, prompt: x}]\n", record.Request{})
		<-run.Done()
		h, err := r.Catalog().Run(run.ID())
		require.NoError(t, err)
		return h
	}
	strong, weak, old := of(record.TierNamespaces), of(record.TierLandlock), of("")
	const warning = "the runs had different sandboxes: namespaces and landlock"
	gate := compare.Options{Policies: &compare.Policies{}}
	got := runnertest.Compare(t, gate, strong, weak)
	require.Equal(t, record.TierLandlock, got.Runs[1].Sandbox.Tier)
	require.Contains(t, got.Comparisons[0].Differences, compare.Difference{
		What: "sandbox", Reference: strong.Record().Sandbox.String(), Run: weak.Record().Sandbox.String(),
	})
	require.Contains(t, got.Comparisons[0].Notes, compare.ComparisonNote{Text: warning})
	policies := got.Comparisons[0].Policies
	require.True(t, policies.Passed)
	require.Equal(t, []compare.PolicyFinding{{Kind: compare.PolicySandbox, Message: warning}}, policies.Warnings)

	got = runnertest.Compare(t, gate, old, strong)
	require.Contains(t, got.Comparisons[0].Differences, compare.Difference{
		What: "sandbox", Reference: (*record.Sandbox)(nil).String(), Run: strong.Record().Sandbox.String(),
	})
	require.Empty(t, got.Comparisons[0].Policies.Warnings)

	var line bytes.Buffer
	require.NoError(t, strong.WriteResult(&line))
	file := filepath.Join(t.TempDir(), "base.jsonl")
	require.NoError(t, os.WriteFile(file, line.Bytes(), 0o600))
	source, err := compare.FromFile(file, "")
	require.NoError(t, err)
	read, err := compare.Compare(context.Background(), []compare.Source{source, compare.FromRun(weak)}, compare.Options{})
	require.NoError(t, err)
	require.Contains(t, read.Comparisons[0].Notes, compare.ComparisonNote{Text: warning})
}
