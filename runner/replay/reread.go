package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"waza/runner/journal"
	"waza/runner/record"
)

// rereadEvents and rereadBytes bound what one call lifts out of a journal. One
// event is lifted whatever its size.
const (
	rereadEvents = 256
	rereadBytes  = 4 << 20
)

// reread lifts the events of a run's own out of its journal, in the order of their
// numbers and each number once. An event that was lost with a damaged line is
// replaced by one that tells so: numbers stay without gaps, and whoever follows
// learns what he missed.
type reread struct {
	r      *journal.Reader
	files  *Trials // for what trials refer to
	next   int64   // number of the event wanted next
	again  func(number int64) (bool, error)
	events []*record.Event
	size   int
	why    *journal.DamagedError // the first damage since the last undamaged line
}

// allThere says that the numbers of all lines, damaged or not, are taken.
const allThere = -1

// ReadEvents returns the next events from seq on, as many as fit, and from where
// to read the ones after. The numbers up to end are known to be taken, so events
// that are not there are lost. Those of amendments are none of the run's own, and
// it ends before them, unless the run was taken up again later, as again tells of
// the line of that number.
func ReadEvents(r *journal.Reader, files *Trials, seq, end int64, again func(number int64) (bool, error)) ([]*record.Event, journal.Mark, error) {
	rr := &reread{r: r, files: files, next: seq, again: again}
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
		if e.Type == record.End { // what comes just now is of whoever takes the run up again
			break
		}
	}
	return rr.events, r.Mark(), nil
}

func (rr *reread) full() bool { return len(rr.events) >= rereadEvents || rr.size >= rereadBytes }

// event returns the event of the next line; nil when it is not wanted or damaged.
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
		rr.note(rr.r.Refuse(err))
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

// decode decodes an event, its trial whole, and tells how large it is.
func (rr *reread) decode(line []byte) (e *record.Event, size int, err error) {
	if !bytes.Contains(line, []byte(`"trial":`+storedHead)) {
		e = new(record.Event)
		err := json.Unmarshal(line, e)
		return e.Delivered(), len(line), err
	}
	e, at, err := decodeEvent(line)
	if err != nil || at.Size == 0 {
		return e, len(line), err
	}
	raw, err := rr.files.whole(line[at.Off : at.Off+int64(at.Size)])
	if err != nil {
		return nil, 0, err
	}
	e.Trial = new(record.Trial)
	return e, len(raw), json.Unmarshal(raw, e.Trial)
}

func (rr *reread) note(damaged *journal.DamagedError) {
	if rr.why == nil {
		rr.why = damaged
	}
}

func (rr *reread) add(e *record.Event) {
	rr.events = append(rr.events, e)
	rr.next, rr.why = e.Seq+1, nil
}

// lose puts events that tell of the loss in the place of those up to last. before
// is the last number before the loss. It reports whether there was room for all.
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

// lostEvent tells of the event n, which is one of those from first to last that
// are lost; the first tells of all.
func lostEvent(n, first, last int64, at time.Time, why *journal.DamagedError) *record.Event {
	e := &record.Event{Seq: n, Time: at, Type: record.Log, Level: "debug", Message: fmt.Sprintf("event %d is lost, as event %d tells", n, first)}
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
