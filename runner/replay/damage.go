package replay

import (
	"errors"
	"io"

	"waza/runner/journal"
	"waza/runner/record"
)

// DamageOf reads a run's journal and returns its damage. It decodes nothing, so it takes a
// moment per hundred megabytes. last is the number of the last event, including lost ones.
func DamageOf(run *journal.Run) (d *record.Damage, last int64, err error) {
	r, err := run.Journal()
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	d = &record.Damage{}
	for {
		_, number, _, err := r.Next()
		var damaged *journal.DamagedError
		switch {
		case errors.Is(err, io.EOF):
			d.Events += r.Last() - last
			return d, r.Last(), nil
		case errors.As(err, &damaged):
			addDamage(d, damaged)
		case err != nil:
			return nil, 0, err
		default:
			d.Events += number - last - 1
			last = number
		}
	}
}

// Damage checks all files of the run's record, but decodes little.
func (r *RecordedRun) Damage() (*record.Damage, error) {
	// result.json is read first, because the journal is written before it.
	head, broken, err := r.readResultHead()
	if err != nil {
		return nil, err
	}
	d, last, err := DamageOf(r.Run)
	if err != nil {
		return nil, err
	}
	if head != nil && head.events > last {
		d.Events += head.events - last
		d.Ends = true
	}
	if r.Broken != nil {
		d.Files = append(d.Files, *r.Broken)
	}
	if broken != nil {
		broken.Restored = d.Events == 0
		d.Files = append(d.Files, *broken)
	}
	return d.OrNil(), nil
}

func addDamage(d *record.Damage, e *journal.DamagedError) {
	if d.Parts == 0 {
		d.Line, d.Offset, d.Error = e.Line, e.Offset, e.Err.Error()
	}
	d.Parts++
	d.Bytes += e.Length
}
