package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waza/runner/proc"
	"waza/runner/record"
)

// Turn is the state of an agent after it answered a prompt.
type Turn struct {
	// Num is the number of the prompt, from 1.
	Num int
	// Outcome is the outcome the trial would have if it ended now. Its output is the answer to
	// the last prompt. Its usage covers all turns, as far as known.
	Outcome Outcome
}

// Next returns the next prompt after a turn of the agent, or more false if the conversation is
// over. An error ends the trial like an error of the executor.
type Next func(ctx context.Context, turn Turn) (prompt string, more bool, err error)

// Converse calls ask with the prompt of the trial and then with each further prompt. Further
// prompts come from After or, if After is nil, from FollowUps. It returns the first error of ask
// or After. Executors that can send several prompts in one session use it.
//
// The context of ask ends at the limit of the task for this answer, with an [EndError] as its cause. If ask
// returns that, its outcome counts, and the conversation continues.
func (t *Trial) Converse(ctx context.Context, ask func(ctx context.Context, num int, prompt string) (Outcome, error)) error {
	prompt := t.Prompt
	for num := 1; ; num++ {
		limited, cancel := t.limitAnswer(ctx, num)
		out, err := ask(limited, num, prompt)
		_, err = t.TakeEnd(ctx, limited, err)
		cancel()
		if err != nil {
			return err
		}
		more := false
		if prompt, more, err = t.Next(ctx, Turn{Num: num, Outcome: out}); err != nil || !more {
			return err
		}
	}
}

// limitAnswer returns a context that ends with an [EndError] at the limit of the agent for the answer to a prompt,
// if the task has one.
func (t *Trial) limitAnswer(ctx context.Context, num int) (context.Context, context.CancelFunc) {
	for _, c := range t.Task.Inputs.Checkpoints {
		if c.AfterTurn == num && c.AgentTimeoutSeconds > 0 {
			return LimitAgent(ctx, c.AgentTimeoutSeconds, fmt.Sprintf("agent_timeout_seconds of turn %d", num))
		}
	}
	return ctx, func() {}
}

// LimitAgent returns a context that ends with an [EndError] after some seconds, which a key of the task sets.
func LimitAgent(ctx context.Context, seconds float64, key string) (context.Context, context.CancelFunc) {
	limit := time.Duration(seconds * float64(time.Second))
	return context.WithTimeoutCause(ctx, limit, &EndError{Reason: fmt.Sprintf("the agent was ended after %v, its %s", limit, key)})
}

// TakeEnd returns what remains of the error of an agent whose context, limited, is derived from ctx. If waza ended
// the agent, the transcript records that, and ended is the reason: the error is nil. Faults of waza after the end,
// such as files that cannot be copied from a container, remain errors, and so does an error that stops the run.
func (t *Trial) TakeEnd(ctx, limited context.Context, err error) (ended *EndError, rest error) {
	if err == nil || ctx.Err() != nil {
		return nil, err
	}
	ended, ok := Ended(limited)
	if !ok {
		return nil, err
	}
	t.Transcript.Add(record.Entry{Type: record.EntryStop, Text: ended.Reason})
	// After a decision, the agent's own end in an error makes no difference, whether it came before that of waza or not.
	caused := ended.Decided || errors.Is(err, ended) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if lost := (*proc.LostError)(nil); !caused || errors.As(err, &lost) || AsStop(err) != nil {
		return nil, err
	}
	return ended, nil
}

// Next returns the prompt that follows a turn: that of After, else that of FollowUps.
func (t *Trial) Next(ctx context.Context, turn Turn) (prompt string, more bool, err error) {
	if t.After != nil {
		return t.After(ctx, turn)
	}
	if turn.Num > len(t.FollowUps) {
		return "", false, nil
	}
	return t.FollowUps[turn.Num-1], true, nil
}
