package trial

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"waza/eval"
	"waza/runner/grader"
	"waza/runner/record"
)

// errNoWorkspace is the reason why a grader of a checkpoint cannot use the workspace again: the
// record contains only the final workspace.
var errNoWorkspace = errors.New("the workspace after that turn was not recorded; run the task again")

// checkpoints grades the checkpoints that the recorded trial reached again, as far as its record
// contains their input: the transcript and the answer, but not the workspace at that time.
// Results of graders that used more remain as recorded.
func (r *RecordedTrial) checkpoints(ctx context.Context, old *record.Trial, subject grader.Subject, judged **record.Usage) []record.Grade {
	var all []record.Grade
	done := map[int]bool{} // indexes of old.Checkpoints
	for i := range r.Order.Task.Inputs.Checkpoints {
		c := &r.Order.Task.Inputs.Checkpoints[i]
		at := slices.IndexFunc(old.Checkpoints, func(p record.Checkpoint) bool { return p.AfterTurn == c.AfterTurn })
		for at >= 0 && done[at] { // several checkpoints after one turn were reached in order
			next := slices.IndexFunc(old.Checkpoints[at+1:], func(p record.Checkpoint) bool { return p.AfterTurn == c.AfterTurn })
			if next < 0 {
				at = -1
				break
			}
			at += 1 + next
		}
		if at < 0 {
			continue
		}
		done[at] = true
		for _, g := range r.Env.bindCheckpoint(r.Order, c) {
			res := r.checkpoint(ctx, g, c, &old.Checkpoints[at], old, subject)
			*judged = record.AddUsage(*judged, res.Usage)
			all = append(all, res)
		}
	}
	return all
}

func (r *RecordedTrial) checkpoint(
	ctx context.Context, g *grader.Bound, c *eval.Checkpoint, p *record.Checkpoint, old *record.Trial,
	s grader.Subject,
) record.Grade {
	before := r.before(c.AfterTurn)
	name, lost := checkpointName(g.Name, c.AfterTurn), p.OutputLost || p.Entries > len(old.Transcript)
	s.Transcript = old.Transcript[:min(p.Entries, len(old.Transcript))]
	s.Output, s.OutputDropped, s.Destroyed = grader.LastAnswer(s.Transcript), 0, ""
	s.Usage, s.Duration = p.Usage, time.Duration(p.DurationMS)*time.Millisecond
	s.Dir = func() (string, error) { lost = true; return "", errNoWorkspace }
	s.Root = func() (*os.Root, error) { lost = true; return nil, errNoWorkspace }
	s.Missing = func(string) error { lost = true; return errNoWorkspace }
	subject := grader.NewSubject(s)
	for _, results := range before {
		if res, i := g.Recall(subject, results); i >= 0 {
			return atCheckpoint(res, c.AfterTurn)
		}
	}
	res, _ := g.Grade(ctx, subject)
	if lost {
		for _, results := range before {
			if i := slices.IndexFunc(results, func(res record.Grade) bool { return res.Name == name && res.Type == g.Type }); i >= 0 {
				return results[i]
			}
		}
	}
	return atCheckpoint(res, c.AfterTurn)
}

// before returns the earlier results of checkpoints after a turn or, with 0, those of the
// finished trial.
func (r *RecordedTrial) before(turn int) [][]record.Grade {
	list := make([][]record.Grade, len(r.Before))
	for i, results := range r.Before {
		for _, res := range results {
			if res.AfterTurn == turn {
				list[i] = append(list[i], res)
			}
		}
	}
	return list
}
