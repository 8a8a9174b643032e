package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/proc"
	"waza/runner/record"
)

// executeEnding is like execute, and ends the agent when waza needs nothing more of it: at the limit of
// the agent itself, or when the verdict of a trigger test is decided. That is no error, and ended is its reason.
// Faults of waza after the end, such as files that cannot be copied from a container, remain errors.
func (w *work) executeEnding(ctx context.Context, t *executor.Trial) (out executor.Outcome, ended *executor.EndError, err error) {
	limited, cancel := w.untilEnough(ctx, t)
	defer cancel()
	if out, err = w.execute(limited, t); err == nil || ctx.Err() != nil {
		return out, nil, err
	}
	ended, ok := errors.AsType[*executor.EndError](context.Cause(limited))
	if !ok {
		return out, nil, err
	}
	t.Transcript.Add(record.Entry{Type: record.EntryStop, Text: ended.Reason})
	caused := errors.Is(err, ended) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if lost := (*proc.LostError)(nil); !caused || errors.As(err, &lost) {
		return out, nil, err
	}
	return out, ended, nil
}

// untilEnough returns a context that ends with an [executor.EndError] when waza needs nothing more of the agent.
func (w *work) untilEnough(ctx context.Context, t *executor.Trial) (context.Context, context.CancelFunc) {
	switch {
	case w.Trigger != nil && w.kind.Streams && len(w.graders) == 1: // nothing but the grader of the test
		return w.untilDecided(ctx, t)
	case w.Trigger != nil || w.Task.AgentTimeoutSeconds <= 0:
		return ctx, func() {}
	}
	limit := time.Duration(w.Task.AgentTimeoutSeconds * float64(time.Second))
	return context.WithTimeoutCause(ctx, limit, &executor.EndError{
		Reason: fmt.Sprintf("the agent was ended after %v, its agent_timeout_seconds", limit),
	})
}

// untilDecided returns a context that ends when the verdict of a trigger test is decided.
func (w *work) untilDecided(ctx context.Context, t *executor.Trial) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	end := &executor.EndError{Reason: "the agent was ended early: its use of skills decided the trigger test", Decided: true}
	if w.Trigger.FirstTool {
		end.Reason = "the agent was ended early: its first tool call decided the trigger test"
	}
	t.Transcript.Watch(func(entries []record.Entry, settled int) {
		if w.Trigger.FirstTool {
			entries = entries[:settled]
		}
		if limited.Err() == nil && behavior.TriggerDecided(w.Trigger, w.triggerSubject(entries)) {
			cancel(end)
		}
	})
	return limited, func() { cancel(nil) }
}

// triggerSubject returns what the grader of a trigger test sees of an agent that did not end by itself.
func (w *work) triggerSubject(entries []record.Entry) *grader.Subject {
	return grader.NewSubject(grader.Subject{Suite: w.Suite, Task: w.Task, Transcript: entries, Capabilities: w.caps})
}
