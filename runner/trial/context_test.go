package trial

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
)

// The context of an attempt behaves like one of package context with the same deadline, whether
// somebody waited for its end before or not.
func TestAttemptContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("a reason")
	steps := map[string]func(cancelRun context.CancelCauseFunc, end context.CancelCauseFunc){
		"nothing":          func(_, _ context.CancelCauseFunc) {},
		"run is cancelled": func(run, _ context.CancelCauseFunc) { run(cause) },
		"attempt is ended": func(_, end context.CancelCauseFunc) { end(cause) },
		"attempt is over":  func(_, end context.CancelCauseFunc) { end(nil) },
		"deadline passes":  func(_, _ context.CancelCauseFunc) { time.Sleep(2 * time.Second) },
		"ended twice": func(run, end context.CancelCauseFunc) {
			end(cause)
			end(nil)
			run(nil)
		},
		"over before the deadline": func(_, end context.CancelCauseFunc) {
			end(nil)
			time.Sleep(2 * time.Second)
		},
	}
	uses := map[string]func(ctx context.Context) context.Context{
		"unused": func(ctx context.Context) context.Context { return ctx },
		"waiting": func(ctx context.Context) context.Context {
			ctx.Done()
			return ctx
		},
		"derived": func(ctx context.Context) context.Context {
			child, cancel := context.WithCancel(ctx)
			context.AfterFunc(child, cancel)
			return child
		},
	}
	for step, do := range steps {
		for use, with := range uses {
			t.Run(step+"/"+use, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					order := &record.Order{Suite: &eval.Suite{}, Task: &eval.Task{}, Timeout: time.Second}
					state := func(ctx context.Context, cancelRun, end context.CancelCauseFunc) []any {
						defer end(nil)
						child := with(ctx)
						do(cancelRun, end)
						synctest.Wait()
						at, limited := ctx.Deadline()
						closed := func(ctx context.Context) bool {
							select {
							case <-ctx.Done():
								return true
							default:
								return false
							}
						}
						return []any{
							ctx.Err(), context.Cause(ctx), ctx.Value(keyOfTest{}), time.Until(at), limited,
							closed(ctx), closed(child), child.Err(), context.Cause(child),
						}
					}
					run, cancelRun := context.WithCancelCause(context.WithValue(t.Context(), keyOfTest{}, "value"))
					want, stop := context.WithTimeoutCause(run, order.Timeout, deadline(order))
					defer stop()
					want, end := context.WithCancelCause(want)
					expected := state(want, cancelRun, end)

					run, cancelRun = context.WithCancelCause(context.WithValue(t.Context(), keyOfTest{}, "value"))
					defer cancelRun(nil)
					var got attemptContext
					got.init(run, order, time.Now())
					require.Equal(t, expected, state(&got, cancelRun, got.end))
				})
			})
		}
	}
}

type keyOfTest struct{}

// An attempt that waits for nothing costs no more than its own memory.
func TestAttemptContextIsFree(t *testing.T) {
	run, cancel := context.WithCancel(t.Context())
	defer cancel()
	order := &record.Order{Timeout: time.Hour}
	var ctx attemptContext
	require.Zero(t, testing.AllocsPerRun(100, func() {
		ctx.init(run, order, time.Now())
		_, _, _ = ctx.Err(), context.Cause(&ctx), ctx.Value(keyOfTest{})
		ctx.end(nil)
		ctx.over = false
	}))
}
