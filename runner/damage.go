package runner

import (
	"errors"
	"fmt"
	"io"

	"waza/runner/journal"
)

// Damage tells of what is lost of a run's journal. Trials that stood there have
// not ended, as far as anyone can tell; what result.json holds is not affected.
type Damage struct {
	// Events is how many events are lost, at least.
	Events int64 `json:"events"`
	// Parts is how many parts of the file are damaged, Bytes how much that is. They
	// are 0 where lines are missing.
	Parts int64 `json:"parts"`
	Bytes int64 `json:"bytes"`
	// Line and Offset, in bytes, are where the first part is; Error says what is
	// wrong with it.
	Line   int64  `json:"line,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (d *Damage) String() string {
	lost := "no event is lost"
	if d.Events > 0 {
		lost = fmt.Sprintf("events lost: %d", d.Events)
	}
	switch d.Parts {
	case 0:
		return "lines of the journal are missing; " + lost
	case 1:
		return fmt.Sprintf("the journal is damaged at line %d (byte %d, %d bytes): %s; %s", d.Line, d.Offset, d.Bytes, d.Error, lost)
	}
	return fmt.Sprintf("the journal is damaged at %d places, first at line %d (byte %d): %s; %s", d.Parts, d.Line, d.Offset, d.Error, lost)
}

// damageOf goes through a run's journal; nil when all is there. It decodes nothing,
// so it takes a moment for each hundred megabytes.
func damageOf(run *journal.Run) (*Damage, error) {
	r, err := run.Journal()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var d Damage
	for last := int64(0); ; {
		_, number, _, err := r.Next()
		var damaged *journal.DamagedError
		switch {
		case errors.Is(err, io.EOF):
			if d.Events += r.Last() - last; d == (Damage{}) {
				return nil, nil
			}
			return &d, nil
		case errors.As(err, &damaged):
			d.add(damaged)
		case err != nil:
			return nil, err
		default:
			d.Events += number - last - 1
			last = number
		}
	}
}

func (d *Damage) add(e *journal.DamagedError) {
	if d.Parts == 0 {
		d.Line, d.Offset, d.Error = e.Line, e.Offset, e.Err.Error()
	}
	d.Parts++
	d.Bytes += e.Length
}
