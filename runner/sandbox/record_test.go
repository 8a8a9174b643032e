package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// A record names what this machine keeps of a policy, and the rest.
func TestOf(t *testing.T) {
	t.Parallel()
	var asked surroundings.Sandbox
	asked.SetDefaults()
	asked.Network = surroundings.Network{}
	s, err := sandbox.Of(asked)
	require.NoError(t, err)
	require.Equal(t, sandbox.Offered()[0], s.Tier)
	if s.Tier == record.TierNamespaces {
		require.Equal(t, asked.Limits, s.Limits)
		require.False(t, s.Network.Open)
	} else {
		require.Zero(t, s.Limits)
		require.Contains(t, s.Missing, "processes, disk and open files are not limited")
	}
	if s.Tier == record.TierLandlock || s.Tier == record.TierNone {
		require.True(t, s.Network.Open)
		require.Contains(t, s.Missing, "the network is not restricted")
	}

	asked.Mode = surroundings.SandboxOff
	s, err = sandbox.Of(asked)
	require.NoError(t, err)
	require.Equal(t, "off", s.String())

	asked.Mode = "other"
	_, err = sandbox.Of(asked)
	require.Error(t, err)
}
