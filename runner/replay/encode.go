package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"waza/runner/journal"
	"waza/runner/provider"
	"waza/runner/record"
)

// Encoder turns events into journal lines. It reuses its buffer.
type Encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

// NewEncoder returns an encoder of lines of a journal.
func NewEncoder() *Encoder {
	e := &Encoder{}
	e.enc = plainEncoder(&e.buf)
	return e
}

// Record makes the line of an event: without secrets, and without what is large,
// which it stores in blobs. It returns the event as subscribers may see it, and how
// large it is with all of it. The line is valid until the next call.
func (e *Encoder) Record(ev *record.Event, secrets *provider.Redactor, blobs *journal.Blobs) (_ *record.Event, line []byte, trialAt, size int, err error) {
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

// Line encodes an event without its trial first, so that it knows where in the
// line the trial begins; stored, unless nil, is written for the trial. The line is
// valid until the next call.
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

// redact takes keys out of an event before it is recorded, and so before anyone
// sees it, whoever put them there: the agent, a grader or an error.
func (e *Encoder) redact(secrets *provider.Redactor, ev *record.Event, line []byte, trialAt int) (*record.Event, []byte, int, error) {
	clean := secrets.JSON(line)
	if bytes.Equal(clean, line) {
		return ev, line, trialAt, nil
	}
	ev = new(record.Event)
	if err := json.Unmarshal(clean, ev); err != nil {
		return nil, nil, 0, fmt.Errorf("an event without its secrets: %w", err)
	}
	line, trialAt, err := e.Line(ev, nil)
	return ev, line, trialAt, err
}
