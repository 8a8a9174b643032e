package trial

import (
	"context"

	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/record"
)

// executeEnding is like execute, and ends the agent when waza needs nothing more of it: at the limit of
// the agent itself, or when the verdict of a trigger test is decided. That is no error, and ended is its reason.
func (w *work) executeEnding(ctx context.Context, t *executor.Trial) (out executor.Outcome, ended *executor.EndError, err error) {
	limited, cancel := w.untilEnough(ctx, t)
	defer cancel()
	out, err = w.execute(limited, t)
	ended, err = t.TakeEnd(ctx, limited, err)
	return out, ended, err
}

// untilEnough returns a context that ends with an [executor.EndError] when waza needs nothing more of the agent.
func (w *work) untilEnough(ctx context.Context, t *executor.Trial) (context.Context, context.CancelFunc) {
	switch {
	case w.Trigger != nil && w.kind.Streams && len(w.graders) == 1: // nothing but the grader of the test
		return w.untilDecided(ctx, t)
	case w.Trigger != nil || w.Task.AgentTimeoutSeconds <= 0:
		return ctx, func() {}
	}
	return executor.LimitAgent(ctx, w.Task.AgentTimeoutSeconds, "agent_timeout_seconds")
}

// untilDecided returns a context that ends when the verdict of a trigger test is decided.
func (w *work) untilDecided(ctx context.Context, t *executor.Trial) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	end := &executor.EndError{Reason: "the agent was ended early: its use of skills decided the trigger test", Decided: true}
	if w.Trigger.FirstTool {
		end.Reason = "the agent was ended early: its first tool call decided the trigger test"
	}
	decision := triggerDecision{work: w}
	t.Transcript.Watch(func(entries []record.Entry, settled int) {
		if limited.Err() == nil && decision.made(entries, settled) {
			cancel(end)
		}
	})
	return limited, func() { cancel(nil) }
}

// triggerDecision looks for the entry of a transcript that decides a trigger test. One entry decides, so that it reads
// each once.
type triggerDecision struct {
	*work
	read int // number of entries that it has read
}

// made reports whether the entries that were added decide the test. For tests of the first tool call, calls from settled on
// can still change.
func (d *triggerDecision) made(entries []record.Entry, settled int) bool {
	if d.Trigger.FirstTool {
		entries = entries[:settled]
	}
	added := entries[d.read:]
	d.read = len(entries)
	return len(added) > 0 && behavior.TriggerDecided(d.Trigger, d.triggerSubject(added))
}

// triggerSubject returns what the grader of a trigger test sees of an agent that did not end by itself.
func (w *work) triggerSubject(entries []record.Entry) *grader.Subject {
	return grader.NewSubject(grader.Subject{Suite: w.Suite, Task: w.Task, Transcript: entries, Capabilities: w.caps})
}
