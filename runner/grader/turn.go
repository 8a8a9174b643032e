package grader

import (
	"slices"
	"time"

	"waza/runner/record"
)

// turnStarts returns the indexes of the entries with which turns start: the prompts.
func (s *Subject) turnStarts() []int {
	var starts []int
	for i := range s.Transcript {
		if e := &s.Transcript[i]; e.Type == record.EntryMessage && e.Role == "user" {
			starts = append(starts, i)
		}
	}
	return starts
}

// AtTurn returns the part of the subject that belongs to the n-th prompt, from 1: everything that the
// transcript records from that prompt to the next. It is nil if that turn did not happen; with an
// error, the transcript lacks entries and the turn may have happened. The usage of a turn is known
// only if there is no other, and the workspace is that of the whole trial.
func (s *Subject) AtTurn(n int) (*Subject, error) {
	starts := s.turnStarts()
	switch {
	case len(starts) == 0 && n == 1 && s.TranscriptCut() == nil:
		return s, nil // the executor records no prompts, so nothing was sent after the first
	case n > len(starts):
		return nil, s.TranscriptCut()
	case len(starts) == 1:
		return s, nil
	}
	part := *s
	from, to := starts[n-1], len(s.Transcript)
	if n < len(starts) {
		to = starts[n]
	}
	part.Transcript = s.Transcript[from:to:to]
	part.Usage = nil
	if n > 1 {
		part.Prompt = s.Transcript[from].Text
	}
	if n < len(starts) {
		part.Output, part.OutputDropped = LastAnswer(part.Transcript), 0
		if cut := s.TranscriptCut(); cut != nil && part.Output == "" {
			return nil, cut
		}
	}
	if took := durationOf(part.Transcript); took > 0 {
		part.Duration, part.Untimed = took, false
	}
	part.ReadTranscript()
	part.entriesDropped = s.entriesDropped
	return &part, nil
}

// LastAnswer returns the last message of the agent in a transcript.
func LastAnswer(entries []record.Entry) string {
	for i := range slices.Backward(entries) {
		if e := &entries[i]; e.Type == record.EntryMessage && e.Role == "assistant" {
			return e.Text
		}
	}
	return ""
}

// durationOf returns the time from the first entry to the last event; 0 if the entries have no times.
func durationOf(entries []record.Entry) time.Duration {
	for i := range slices.Backward(entries) {
		if entries[i].Type != record.EntryDropped {
			return time.Duration(entries[i].AtMS-entries[0].AtMS) * time.Millisecond
		}
	}
	return 0
}
