package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"waza/runner/journal"
	"waza/runner/record"
)

// rereadEvents and rereadBytes limit what one call reads from a journal. A single event is read
// whatever its size.
const (
	rereadEvents = 256
	rereadBytes  = 4 << 20
)

// reread reads the run's own events from its journal, in the order of their numbers and each
// number once. A log event replaces each event that was lost with a damaged line. Numbers
// therefore have no gaps, and a subscriber learns which events are missing.
type reread struct {
	r      *journal.Reader
	files  *Trials // for the contents that trials refer to; nil leaves trials out
	next   int64   // number of the next requested event
	again  func(number int64) (bool, error)
	events []*record.Event
	size   int
	why    *journal.DamagedError // the first damage since the last undamaged line
}

// allThere states that the numbers of all lines, damaged or not, are in use.
const allThere = -1

// ReadEvents returns the next events from seq on, as many as fit, and the mark after them. The
// numbers up to end are known to be in use, so missing events are lost. Events of amendments are
// not the run's own: the run ends before them, unless it was resumed later. again reports
// whether the line with a number was followed by a resume. files is for the contents that trials
// refer to; if it is nil, the events lack their trials.
func ReadEvents(
	r *journal.Reader, files *Trials, seq, end int64, again func(number int64) (bool, error),
) ([]*record.Event, journal.Mark, error) {
	rr := &reread{r: r, files: files, next: seq, again: again}
	if files == nil {
		r.Reuse()
	}
	for !rr.full() {
		before := r.Mark()
		e, err := rr.event()
		if errors.Is(err, io.EOF) {
			if end == allThere {
				end = r.Last()
			}
			rr.lose(end, before.Number(), time.Time{})
			return rr.events, before, nil
		}
		if err != nil {
			return nil, before, err
		}
		if e == nil {
			continue
		}
		if !rr.lose(e.Seq-1, before.Number(), e.Time) || e.Type.Amends() {
			return rr.events, before, nil
		}
		rr.add(e)
		if e.Type == record.End { // later events belong to the process that resumes the run
			break
		}
	}
	return rr.events, r.Mark(), nil
}

func (rr *reread) full() bool { return len(rr.events) >= rereadEvents || rr.size >= rereadBytes }

// event returns the event of the next line; nil when it is not requested or damaged.
func (rr *reread) event() (*record.Event, error) {
	line, number, _, err := rr.r.Next()
	if damaged := (*journal.DamagedError)(nil); errors.As(err, &damaged) {
		rr.note(damaged)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if number < rr.next {
		rr.why = nil
		return nil, nil
	}
	e, size, err := rr.decode(line)
	if err != nil {
		rr.note(rr.r.MarkDamaged(err))
		return nil, nil
	}
	e.Seq = number
	rr.size += size
	if !e.Type.Supersedable() {
		return e, nil
	}
	later, err := rr.again(number)
	if later {
		e = superseded(e)
	}
	return e, err
}

// decode decodes an event with its whole trial, unless trials are left out, and returns its size.
func (rr *reread) decode(line []byte) (e *record.Event, size int, err error) {
	if rr.files == nil {
		earlier := &record.Event{}
		if n := len(rr.events); n > 0 {
			earlier = rr.events[n-1]
		}
		if e, err = liftHead(line, earlier); err != nil {
			return nil, 0, err
		}
		return e.Delivered(), e.Weight(), nil
	}
	if !bytes.Contains(line, []byte(`"trial":`+storedHead)) {
		e = new(record.Event)
		err := json.Unmarshal(line, e)
		return e.Delivered(), len(line), err
	}
	e, at, err := decodeEvent(line)
	if err != nil || at.Size == 0 {
		return e, len(line), err
	}
	e.Trial = new(record.Trial)
	if err := rr.files.DecodeRaw(line[at.Off:at.Off+int64(at.Size)], e.Trial); err != nil {
		return nil, 0, err
	}
	return e, max(len(line), e.Weight()), nil
}

func (rr *reread) note(damaged *journal.DamagedError) {
	rr.why = cmp.Or(rr.why, damaged)
}

func (rr *reread) add(e *record.Event) {
	rr.events = append(rr.events, e)
	rr.next, rr.why = e.Seq+1, nil
}

// lose replaces the lost events up to last by log events. before is the last number before the
// loss. It reports whether all of them fit.
func (rr *reread) lose(last, before int64, at time.Time) bool {
	if at.IsZero() && len(rr.events) > 0 {
		at = rr.events[len(rr.events)-1].Time
	}
	why := rr.why
	for n := rr.next; n <= last; n++ {
		if rr.full() {
			return false
		}
		rr.add(lostEvent(n, before+1, last, at, why))
	}
	return true
}

// lostEvent returns the replacement of event n, one of the lost events from first to last. The
// replacement of the first describes the whole loss.
func lostEvent(n, first, last int64, at time.Time, why *journal.DamagedError) *record.Event {
	e := &record.Event{Seq: n, Time: at, Type: record.Log, Level: "debug", Message: fmt.Sprintf("event %d is lost, see event %d", n, first)}
	if n > first {
		return e
	}
	lost := fmt.Sprintf("event %d is lost", first)
	if last > first {
		lost = fmt.Sprintf("events %d to %d are lost", first, last)
	}
	e.Level, e.Message = "warning", "journal: lines are missing; "+lost
	if why != nil {
		e.Message = fmt.Sprintf("%v; %s", why, lost)
	}
	return e
}
