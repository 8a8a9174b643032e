package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/secrets"
)

// An Encoder encodes events as journal lines. It reuses its buffer.
type Encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

// NewEncoder returns an encoder.
func NewEncoder() *Encoder {
	e := &Encoder{}
	e.enc = plainEncoder(&e.buf)
	return e
}

// Record encodes the line of an event: without secrets, and without large parts, which it stores
// in blobs. It returns the event as subscribers may see it, and its total size. The line is
// valid until the next call.
func (e *Encoder) Record(ev *record.Event, secrets *secrets.Redactor, blobs *journal.Blobs) (_ *record.Event, line []byte, trialAt, size int, err error) {
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

// Line encodes an event first without its trial, to determine where the trial starts in the
// line. It writes stored, unless nil, instead of the trial. The line is valid until the next
// call.
func (e *Encoder) Line(ev *record.Event, stored *storedTrial) (line []byte, trialAt int, err error) {
	e.buf.Reset()
	head := *ev
	head.Trial = nil
	if err := e.enc.Encode(&head); err != nil {
		return nil, 0, err
	}
	if ev.Trial == nil {
		return bytes.TrimSuffix(e.buf.Bytes(), []byte("\n")), 0, nil
	}
	e.buf.Truncate(e.buf.Len() - len("}\n"))
	e.buf.WriteString(`,"trial":`)
	trialAt = e.buf.Len()
	var trial any = ev.Trial
	if stored != nil {
		trial = stored
	}
	if err := e.enc.Encode(trial); err != nil {
		return nil, 0, err
	}
	e.buf.Truncate(e.buf.Len() - len("\n"))
	e.buf.WriteByte('}')
	return e.buf.Bytes(), trialAt, nil
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
