package grader

import (
	"errors"
	"fmt"

	"waza/runner/executor"
	"waza/runner/record"
)

// waza keeps a limited part of what an agent produces and drops the rest. A check cannot
// conclude anything from what it does not find in the kept part: a forbidden word may be behind
// the cut, and so may a required one. Such a check is undecided. An undecided check makes the
// trial an error, unless another check of the grader failed for certain.

// OutputCut returns an error if a part of the output was dropped.
func (s *Subject) OutputCut() error {
	if s.OutputDropped <= 0 {
		return nil
	}
	return fmt.Errorf("the output was cut after %d bytes (%d bytes dropped)", len(s.Output), s.OutputDropped)
}

// ShownOutput returns the output as people and judges see it: a note replaces the dropped part.
func (s *Subject) ShownOutput() string {
	if s.OutputDropped <= 0 {
		return s.Output
	}
	return fmt.Sprintf("%s\n[%d more bytes were dropped]", s.Output, s.OutputDropped)
}

// TranscriptCut returns an error if entries of the transcript were dropped. Those may have been
// tool calls or skills.
func (s *Subject) TranscriptCut() error {
	if s.EndedEarly {
		return errEndedEarly
	}
	if s.entriesDropped == "" {
		return nil
	}
	return errors.New("the transcript is incomplete: " + s.entriesDropped)
}

var errEndedEarly = executor.Permanent(errors.New("the transcript is incomplete: waza ended the agent early, because the verdict was decided then; " +
	"run the trial again"))

// dropped returns the transcript's note about dropped entries, or an empty text.
func dropped(transcript []record.Entry) string {
	for i := range transcript {
		if e := &transcript[i]; e.Type == record.EntryDropped {
			return e.Text
		}
	}
	return ""
}
