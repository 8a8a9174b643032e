package model

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/internal/secrets"
	"waza/runner/provider"
	"waza/runner/record"
)

// The speed of a model once included the first token of each answer, which is written before the
// measured time starts: two tokens within a second were 2 per second.
func TestTokensPerSecond(t *testing.T) {
	t.Parallel()
	speed := func(replies ...provider.Reply) float64 {
		r := &recorder{
			model: &model{pool: provider.NewPool(provider.PoolOptions{Redactor: &secrets.Redactor{}})},
			trial: &executor.Trial{Transcript: executor.NewTranscript()},
		}
		for i := range replies {
			replies[i].Tries = 1
			r.replied(&replies[i], nil)
		}
		return r.outcome().Speed.TokensPerSecond
	}
	reply := func(tokens int64, first, whole time.Duration) provider.Reply {
		return provider.Reply{Usage: record.Usage{OutputTokens: tokens}, FirstToken: first, Duration: whole}
	}
	require.InDelta(t, 1, speed(reply(2, time.Second, 2*time.Second)), 1e-12)
	require.InDelta(t, 100, speed(reply(301, time.Second, 4*time.Second)), 1e-12)
	require.InDelta(t, (100+50)/3.0, speed(reply(101, time.Second, 3*time.Second), reply(51, time.Second, 2*time.Second)), 1e-12)
	require.InDelta(t, 100, speed(reply(101, time.Second, 2*time.Second), reply(50, 0, time.Second)), 1e-12, "an answer without a first token")
	require.Zero(t, speed(reply(1, time.Second, 2*time.Second)))
	require.Zero(t, speed(reply(0, time.Second, 2*time.Second)))
}
