package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/record"
)

// An Encoder encodes events as journal lines. It reuses its buffer. The zero value is ready to use.
type Encoder struct{ buf []byte }

// Record encodes the line of an event: without secrets, and without large parts, which it stores
// in blobs. It returns the event as subscribers may see it, and its total size. The line is
// valid until the next call.
func (e *Encoder) Record(
	ev *record.Event, secrets *secrets.Redactor, blobs *journal.Blobs,
) (_ *record.Event, line []byte, trialAt, size int, err error) {
	if ev.Trial != nil && ev.Weight() > storeAbove {
		return e.recordLarge(ev, secrets, blobs)
	}
	line, trialAt, err = e.Line(ev, nil)
	if err == nil && !secrets.Empty() {
		ev, line, trialAt, err = e.redact(secrets, ev, line, trialAt)
	}
	size = len(line)
	if err != nil || ev.Trial == nil || size <= storeAbove {
		return ev, line, trialAt, size, err
	}
	if stored := store(ev.Trial, blobs); stored != nil {
		line, trialAt, err = e.Line(ev, stored)
	}
	return ev, line, trialAt, size, err
}

// Append appends the line of an event, see [Encoder.Record], to the journal of a run. It returns
// the event as subscribers may see it, the place of its trial, and its total size.
func (e *Encoder) Append(log *journal.Writer, ev *record.Event, secrets *secrets.Redactor) (_ *record.Event, at Place, size int, err error) {
	ev, line, trialAt, size, err := e.Record(ev, secrets, log.Blobs())
	if err != nil {
		return nil, Place{}, 0, err
	}
	off := log.Append(line)
	if ev.Trial != nil {
		at = lastMember(line, line[trialAt:len(line)-1])
		at.Off += off
	}
	return ev, at, size, nil
}

// recordLarge is like [Encoder.Record] for an event whose trial is large. It encodes no large
// part that it stores, and searches each of them once for secrets, because an output of 4 MB
// that is also the last message would otherwise take most of the time of its trial.
func (e *Encoder) recordLarge(
	ev *record.Event, secrets *secrets.Redactor, blobs *journal.Blobs,
) (_ *record.Event, line []byte, trialAt, size int, err error) {
	if !secrets.Empty() {
		if ev, err = e.redactLarge(secrets, ev); err != nil {
			return nil, nil, 0, 0, err
		}
	}
	line, trialAt, err = e.Line(ev, store(ev.Trial, blobs))
	return ev, line, trialAt, max(len(line), ev.Weight()), err
}

// Line encodes an event, with its trial as the last member, and returns where the trial starts in
// the line. It writes stored, unless nil, instead of the trial. The line is valid until the next
// call.
func (e *Encoder) Line(ev *record.Event, stored *storedTrial) (line []byte, trialAt int, err error) {
	defer func() { e.buf = line }()
	if line, err = ev.AppendHead(e.buf[:0]); err != nil || ev.Trial == nil {
		return append(line, '}'), 0, err
	}
	line = append(line, `,"trial":`...)
	trialAt = len(line)
	if stored != nil {
		line, err = stored.appendJSON(line)
	} else {
		line, err = ev.Trial.AppendJSON(line)
	}
	return append(line, '}'), trialAt, err
}

// redact removes keys from an event before it is recorded, and thus before anyone sees it.
// Agents, graders and errors can all contain keys.
func (e *Encoder) redact(secrets *secrets.Redactor, ev *record.Event, line []byte, trialAt int) (*record.Event, []byte, int, error) {
	clean := secrets.JSON(line)
	if bytes.Equal(clean, line) {
		return ev, line, trialAt, nil
	}
	ev = new(record.Event)
	if err := json.Unmarshal(clean, ev); err != nil {
		return nil, nil, 0, fmt.Errorf("redact event: %w", err)
	}
	line, trialAt, err := e.Line(ev, nil)
	return ev, line, trialAt, err
}

// redactLarge returns an event without secrets. It searches the large texts of the trial
// separately from the line with all other parts, and equal texts once.
func (e *Encoder) redactLarge(secrets *secrets.Redactor, ev *record.Event) (*record.Event, error) {
	rest := withOwnTexts(ev)
	large, clean := map[int]string{}, map[string]string{}
	for i, text := range textsOf(rest.Trial) {
		if len(*text) <= storeAbove {
			continue
		}
		if _, known := clean[*text]; !known {
			clean[*text] = secrets.Text(*text)
		}
		large[i], *text = clean[*text], ""
	}
	line, trialAt, err := e.Line(rest, nil)
	if err != nil {
		return nil, err
	}
	if rest, _, _, err = e.redact(secrets, rest, line, trialAt); err != nil {
		return nil, err
	}
	for i, text := range textsOf(rest.Trial) {
		if whole, ok := large[i]; ok {
			*text = whole
		}
	}
	return rest, nil
}

// withOwnTexts returns a copy of an event whose texts, those of textsOf, can be changed.
func withOwnTexts(ev *record.Event) *record.Event {
	own, res := *ev, *ev.Trial
	own.Trial = &res
	res.Transcript = slices.Clone(res.Transcript)
	res.Attempts = slices.Clone(res.Attempts)
	for i := range res.Attempts {
		res.Attempts[i].Transcript = slices.Clone(res.Attempts[i].Transcript)
	}
	return &own
}

// textsOf yields the texts of a trial that can be large, in the same order for the same number
// of attempts and entries.
func textsOf(res *record.Trial) iter.Seq2[int, *string] {
	return func(yield func(int, *string) bool) {
		n := 0
		each := func(output *string, transcript []record.Entry) bool {
			if !yield(n, output) {
				return false
			}
			n++
			for i := range transcript {
				if !yield(n, &transcript[i].Text) {
					return false
				}
				n++
			}
			return true
		}
		if !each(&res.Output, res.Transcript) {
			return
		}
		for i := range res.Attempts {
			if !each(&res.Attempts[i].Output, res.Attempts[i].Transcript) {
				return
			}
		}
	}
}
