package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A hook that cleans up has hookGrace from the moment when the run is cancelled. A hook that was
// already running at that moment used to run for the whole timeout.
func TestAfterContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newEnding(nil)
		r.ctx, r.cancel = context.WithCancelCause(t.Context())
		ctx, cancel := r.contextAfter()
		defer cancel()
		time.Sleep(time.Hour)
		require.NoError(t, ctx.Err())
		r.Cancel()
		late, cancelLate := r.contextAfter()
		defer cancelLate()
		time.Sleep(hookGrace - time.Millisecond)
		require.NoError(t, ctx.Err())
		require.NoError(t, late.Err())
		<-ctx.Done()
		<-late.Done()
		require.ErrorIs(t, context.Cause(ctx), errCancelled)
	})
}
