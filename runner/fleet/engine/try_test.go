package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet/engine"
)

func TestTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		passing := []error{
			nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrTimeout, &jetstream.APIError{Code: 503},
			&jetstream.APIError{Code: 429},
			&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, peer offline"},
		}
		tries := 0
		require.NoError(t, engine.Try(t.Context(), func(ctx context.Context) error {
			if tries++; tries <= len(passing) {
				return passing[tries-1]
			}
			if tries == len(passing)+1 { // no answer
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}))
		require.Equal(t, len(passing)+2, tries)

		lasting := errors.New("no such stream")
		tries = 0
		require.ErrorIs(t, engine.Try(t.Context(), func(context.Context) error { tries++; return lasting }), lasting)
		require.Equal(t, 1, tries)
		require.False(t, engine.Passes(jetstream.ErrJetStreamNotEnabled))
		require.False(t, engine.Passes(&jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, insufficient storage"}))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		started := time.Now()
		require.ErrorIs(t, engine.Try(ctx, func(context.Context) error { return nats.ErrNoResponders }), nats.ErrNoResponders)
		require.Equal(t, time.Minute, time.Since(started))
	})
}
