package grader

import (
	"errors"
	"fmt"

	"waza/runner/record"
)

// What an agent leaves is bounded, and what goes beyond is dropped. Nothing can be
// concluded from its absence in the rest: a forbidden word may stand behind the
// cut, and so may one that is required. Such a check is undecided, which makes the
// trial an error, unless another check of the grader failed for certain.

// OutputCut says that a part of the output was dropped; nil when it is whole.
func (s *Subject) OutputCut() error {
	if s.OutputDropped <= 0 {
		return nil
	}
	return fmt.Errorf("the output was cut after %d bytes, and the rest (%d bytes) was dropped", len(s.Output), s.OutputDropped)
}

// ShownOutput is the output as people and judges see it.
func (s *Subject) ShownOutput() string {
	if s.OutputDropped <= 0 {
		return s.Output
	}
	return fmt.Sprintf("%s\n[%d more bytes were dropped]", s.Output, s.OutputDropped)
}

// TranscriptCut says that entries of the transcript were dropped, tool calls or
// skills maybe; nil when it is whole.
func (s *Subject) TranscriptCut() error {
	if s.entriesDropped == "" {
		return nil
	}
	return errors.New("the transcript is not whole: " + s.entriesDropped)
}

// dropped returns what the transcript says of entries that were dropped.
func dropped(transcript []record.Entry) string {
	for i := range transcript {
		if e := &transcript[i]; e.Type == record.EntryDropped {
			return e.Text
		}
	}
	return ""
}
