package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/judge"
	"waza/runner/internal/responder"
	"waza/runner/record"
	"waza/runner/workspace"
)

// turnHandler handles each answer of the agent: checkpoints grade, and then the next prompt comes
// from the task or from a model that plays the user. It belongs to one attempt. Only one
// goroutine at a time calls its method after.
//
//	prompt ─► agent ─► checkpoints ─► next prompt: follow_up_prompts, or the responder
//	             ▲                          │
//	             └──────────────────────────┘
type turnHandler struct {
	*work
	a       *Attempt
	t       *executor.Trial
	subject grader.Subject // the common part of all subjects of the attempt
	ws      *workspace.Workspace
	start   time.Time
	took    time.Duration // duration of the work between turns, which does not count as time of the agent
	// final are the checkpoints whose files and commands prepare the workspace for the graders of the task.
	// No process of the agent may live then.
	final []*eval.Checkpoint
}

// needed reports whether anything happens between the turns of the task.
func (b *turnHandler) needed() bool {
	return b.Trigger == nil && (len(b.Task.Inputs.Checkpoints) > 0 || b.Task.Inputs.Responder != nil)
}

// after implements [executor.Next].
func (b *turnHandler) after(ctx context.Context, turn executor.Turn) (prompt string, more bool, err error) {
	start := time.Now()
	defer func() { b.took += time.Since(start) }()
	reached := b.checkpointsAfter(turn.Num)
	for _, c := range reached {
		finished, err := b.checkpoint(ctx, c, turn)
		if err != nil {
			return "", false, err
		}
		if finished { // the files of this turn are for a prompt that does not follow, unless it was the last one
			b.finish(b.checkpointsAfter(b.Task.Turns()))
			return "", false, nil
		}
	}
	if prompt, more, err = b.next(ctx, turn); err != nil {
		return "", false, err
	}
	if !more {
		if last := b.Task.Turns(); turn.Num < last { // the responder ended the conversation
			reached = append(reached, b.checkpointsAfter(last)...)
		}
		b.finish(reached)
		return "", false, nil
	}
	for _, c := range reached {
		if err := b.prepare(ctx, c, b.kind.Agents); err != nil {
			return "", false, err
		}
	}
	return prompt, true, nil
}

// checkpointsAfter returns the checkpoints after a turn.
func (b *turnHandler) checkpointsAfter(turn int) (list []*eval.Checkpoint) {
	for i := range b.Task.Inputs.Checkpoints {
		if c := &b.Task.Inputs.Checkpoints[i]; c.AfterTurn == turn {
			list = append(list, c)
		}
	}
	return list
}

// next returns the next prompt.
func (b *turnHandler) next(ctx context.Context, turn executor.Turn) (prompt string, more bool, err error) {
	if b.Task.Inputs.Responder != nil {
		return b.reply(ctx, turn)
	}
	if turn.Num > len(b.t.FollowUps) {
		return "", false, nil
	}
	return b.t.FollowUps[turn.Num-1], true, nil
}

// finish notes the checkpoints that prepare the workspace for the graders of the task. It happens only after
// the agent has ended, because the agent must neither read nor replace what grades it.
func (b *turnHandler) finish(points []*eval.Checkpoint) {
	for _, c := range points {
		if len(c.Files)+len(c.Setup) > 0 {
			b.final = append(b.final, c)
			b.t.EndAgent = true
		}
	}
}

// checkpoint grades the state after a turn. finished means
// that the agent gets no further prompts. An error ends the trial: a grader failed to do its work, or
// did not pass and the checkpoint stops the trial.
func (b *turnHandler) checkpoint(ctx context.Context, c *eval.Checkpoint, turn executor.Turn) (finished bool, err error) {
	entries, output := b.t.Transcript.Entries(), turn.Outcome.Output
	usage := b.env.priced(b.Model, turn.Outcome.Usage)
	point := record.Checkpoint{
		AfterTurn: turn.Num, Passed: true, Entries: len(entries), Usage: usage, OutputLost: output != grader.LastAnswer(entries),
		DurationMS: (time.Since(b.start) - b.took - turn.Outcome.Startup).Milliseconds(),
	}
	s := b.subject
	s.Output, s.OutputDropped, s.Transcript, s.Usage = output, turn.Outcome.OutputDropped, entries, usage
	s.Duration, s.Destroyed = time.Duration(point.DurationMS)*time.Millisecond, b.ws.Destroyed()
	subject := grader.NewSubject(s)
	var failed *record.Grade
	for _, g := range b.env.bindCheckpoint(b.Order, c) {
		res, err := g.Grade(ctx, subject)
		res = atCheckpoint(res, turn.Num)
		b.a.Reached = append(b.a.Reached, res)
		b.a.Judged = record.AddUsage(b.a.Judged, res.Usage)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil:
			b.a.Checkpoints = append(b.a.Checkpoints, point)
			return false, fmt.Errorf("checkpoint: grader %q: %w", res.Name, err)
		case !res.Passed && !res.Optional && point.Passed:
			point.Passed, failed = false, &res
		}
	}
	passed := 0
	for _, g := range b.a.Reached[len(b.a.Reached)-len(c.Graders):] {
		if g.Passed {
			passed++
		}
	}
	b.t.Logf("info", "checkpoint after turn %d: %d of %d graders passed", turn.Num, passed, len(c.Graders))
	point.Stopped = failed != nil && c.OnFailure == eval.CheckpointStop
	b.a.Checkpoints = append(b.a.Checkpoints, point)
	if !point.Stopped {
		return passed < len(c.Graders) && c.OnFailure == eval.CheckpointFinish, nil
	}
	// The agent failed, so this is not an error.
	why := fmt.Sprintf("stopped at a checkpoint: grader %q did not pass", failed.Name)
	if failed.Feedback != "" {
		why += ": " + text.Clip(failed.Feedback, 500)
	}
	return false, &executor.FailedError{Reason: why}
}

// prepareFinal prepares the workspace for the graders of the task. All processes of the agent have ended.
func (b *turnHandler) prepareFinal(ctx context.Context) error {
	for _, c := range b.final {
		if err := b.prepare(ctx, c, false); err != nil {
			return err
		}
	}
	return nil
}

// prepare prepares the workspace for the prompt after a checkpoint or, after the last one, for the graders. While
// the agent lives, nobody knows whether it or a command of the suite wrote a file: the files count as the agent's.
func (b *turnHandler) prepare(ctx context.Context, c *eval.Checkpoint, agentLives bool) error {
	if b.ws.Destroyed() != "" {
		return nil
	}
	err := b.ws.Add(c.Files)
	if blocked := (*workspace.BlockedError)(nil); errors.As(err, &blocked) {
		return &executor.FailedError{Reason: err.Error()} // an agent must not choose an error, which does not count
	}
	if err != nil || len(c.Setup) == 0 {
		return err
	}
	if agentLives {
		return b.runSetup(ctx, b.ws, "checkpoint.setup", c.Setup)
	}
	snapshot := func() *record.Snapshot { return b.ws.Snapshot(ctx, b.env.blobs(b.Order), b.env.Pool.Redactor()) }
	before := snapshot()
	if err := b.runSetup(ctx, b.ws, "checkpoint.setup", c.Setup); err != nil {
		return err
	}
	b.ws.AddWritten(before, snapshot()) // these are no files of the agent
	return nil
}

// atCheckpoint turns a result into that of a checkpoint after a turn. It changes the name,
// because other graders of the task may have the same name.
func atCheckpoint(res record.Grade, turn int) record.Grade {
	res.Name, res.AfterTurn, res.Tools = checkpointName(res.Name, turn), turn, nil
	return res
}

func checkpointName(grader string, turn int) string { return fmt.Sprintf("turn %d: %s", turn, grader) }

// reply asks the model that plays the user for a reply.
func (b *turnHandler) reply(ctx context.Context, turn executor.Turn) (prompt string, more bool, err error) {
	r := b.Task.Inputs.Responder
	if b.a.Responder == nil {
		b.a.Responder = &record.Responded{}
	}
	did := b.a.Responder
	if did.Replies >= r.MaxFollowups {
		did.Outcome = record.ResponderExhausted
		return "", false, nil
	}
	asker, err := b.env.askerOf(r.Model)
	if err != nil {
		return "", false, responderFault(err)
	}
	d, usage, err := responder.Ask(ctx, asker, b.env.Pool.Redactor(), b.t.Expand(r.Instructions), b.t.Transcript.Entries())
	b.a.Replied = record.AddUsage(b.a.Replied, usage)
	switch {
	case ctx.Err() != nil:
		return "", false, context.Cause(ctx)
	case err != nil:
		return "", false, responderFault(err)
	case d.Action == responder.Stop:
		did.Outcome, did.Reason = record.ResponderStopped, d.Reason
		return "", false, nil
	case d.Action == responder.Abstain:
		did.Outcome, did.Reason = record.ResponderAbstained, d.Reason
		why := strings.TrimSpace("the responder abstained after turn " + fmt.Sprint(turn.Num) + ": " + d.Reason)
		return "", false, executor.Permanent(errors.New(why + "; add the answer to its instructions"))
	}
	did.Replies++
	return d.Message, true, nil
}

// responderFault reports that the model could not be asked. The error affects only this task,
// unless the run's budget is used up.
func responderFault(err error) error {
	if stop := executor.AsStop(err); stop != nil && !stop.Orderly {
		err = executor.Permanent(stop.Err)
	}
	return fmt.Errorf("responder: %w", err)
}

// askerOf returns the asker of a model, configured like for judges.
func (e *Env) askerOf(model string) (*judge.Asker, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if asker := e.askers[model]; asker != nil {
		return asker, nil
	}
	asker, err := judge.NewAsker(e.Grading, model)
	if err != nil {
		return nil, err
	}
	if e.askers == nil {
		e.askers = map[string]*judge.Asker{}
	}
	e.askers[model] = asker
	return asker, nil
}

// bindCheckpoint returns the graders of a checkpoint, each built once per Env.
func (e *Env) bindCheckpoint(o *record.Order, c *eval.Checkpoint) []*grader.Bound {
	e.mu.Lock()
	defer e.mu.Unlock()
	var graders []*grader.Bound
	for _, spec := range c.Graders {
		graders = append(graders, e.heldLocked(o, spec).Bound)
	}
	return graders
}
