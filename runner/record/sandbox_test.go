package record_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/record"
)

func TestSandboxInWords(t *testing.T) {
	t.Parallel()
	var asked surroundings.Sandbox
	asked.SetDefaults()
	of := func(mode surroundings.SandboxMode, tier record.Tier, change func(*record.Sandbox)) *record.Sandbox {
		s := &record.Sandbox{Mode: mode, Tier: tier, Network: asked.Network, Limits: asked.Limits}
		if change != nil {
			change(s)
		}
		return s
	}
	for want, s := range map[string]*record.Sandbox{
		"unknown: the run was recorded before waza had sandboxes, or by another tool": nil,
		"off": of(surroundings.SandboxOff, record.TierOff, nil),
		"namespaces, network open, 1024 processes, 10 GiB disk; memory is not limited": of(surroundings.SandboxAuto, record.TierNamespaces, nil),
		"none, network open; this machine has neither namespaces nor Landlock": of(surroundings.SandboxAuto, record.TierNone,
			func(s *record.Sandbox) {
				s.Limits, s.Missing = surroundings.SandboxLimits{}, []string{"this machine has neither namespaces nor Landlock"}
			}),
		"namespaces (strict), network to a.org, b.org:80, 2 GiB memory, 1 process, 64 open files, shared process": of(surroundings.SandboxStrict,
			record.TierNamespaces, func(s *record.Sandbox) {
				s.Network, s.Agent = surroundings.Network{Hosts: []string{"a.org", "b.org:80"}}, record.AgentShared
				s.Limits = surroundings.SandboxLimits{Memory: 2 << 30, Processes: 1, Files: 64}
			}),
		"container, image alpine, network none; memory is not limited": of(surroundings.SandboxContainer, record.TierContainer,
			func(s *record.Sandbox) {
				s.Network, s.Limits, s.Image = surroundings.Network{}, surroundings.SandboxLimits{}, "alpine"
			}),
	} {
		require.Equal(t, want, s.String())
		data, err := json.Marshal(s)
		require.NoError(t, err)
		var back *record.Sandbox
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, s, back, "%s", data)
	}
}

// Runs with different protection are not alike. Nobody knows that of older records.
func TestSandboxDiffers(t *testing.T) {
	t.Parallel()
	a := &record.Sandbox{Tier: record.TierNamespaces, Limits: surroundings.SandboxLimits{Processes: 10}}
	for want, b := range map[string]record.Sandbox{
		"": *a,
		"the runs had different sandboxes: namespaces and landlock": {Tier: record.TierLandlock},
		"the sandboxes of the runs had different limits":            {Tier: record.TierNamespaces},
		"the sandboxes of the runs had different networks: none and open": {
			Tier: record.TierNamespaces, Limits: a.Limits, Network: surroundings.Network{Open: true}},
		"the sandboxes of the runs lacked different parts": {Tier: record.TierNamespaces, Limits: a.Limits, Missing: []string{"x"}},
	} {
		require.Equal(t, want, a.Differs(&b))
	}
	require.Empty(t, a.Differs(nil))

	// Workers of a fleet chose the tiers. Their machines kept as much of the limits as they could.
	had := func(tiers ...record.TierTrials) *record.Sandbox {
		s := &record.Sandbox{Tier: record.TierWorkers, Limits: a.Limits}
		return s.After(&record.Summary{Tiers: tiers})
	}
	both := had(record.TierTrials{Tier: record.TierNamespaces, Trials: 8}, record.TierTrials{Tier: record.TierNone, Trials: 1})
	one := had(record.TierTrials{Tier: record.TierNamespaces, Trials: 9})
	require.Equal(t, "of each worker (namespaces for 8 trials, none for 1 trial), network none, 10 processes; "+
		"each worker keeps what its tier can; memory is not limited", both.String())
	require.Equal(t, "of each worker, network none, 10 processes; each worker keeps what its tier can; memory is not limited", had().String())
	require.Empty(t, a.Differs(one))
	require.Empty(t, one.Differs(one))
	require.Equal(t, "the runs had different sandboxes: namespaces and namespaces/none", a.Differs(both))
	require.Equal(t, "trials of both runs had different sandboxes: namespaces/none", both.Differs(both))
	require.Equal(t, "the runs had different sandboxes: of each worker and namespaces", had().Differs(a))
	require.Equal(t, "the sandboxes of the runs had different limits", one.Differs(&record.Sandbox{Tier: record.TierNamespaces}))
	require.Empty(t, had(record.TierTrials{Tier: record.TierNone, Trials: 1}).Differs(&record.Sandbox{Tier: record.TierNone, Missing: []string{"x"}}))
	require.Empty(t, (*record.Sandbox)(nil).Differs(a))
}
