package executor

import "context"

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
func (t *Trial) Converse(ctx context.Context, ask func(num int, prompt string) (Outcome, error)) error {
	prompt := t.Prompt
	for num := 1; ; num++ {
		out, err := ask(num, prompt)
		if err != nil {
			return err
		}
		more := false
		if prompt, more, err = t.Next(ctx, Turn{Num: num, Outcome: out}); err != nil || !more {
			return err
		}
	}
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
