package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"waza/runner/journal"
	"waza/runner/record"
)

// DamageOf reads a run's journal and returns its damage. It decodes nothing, so it takes a
// moment per hundred megabytes.
func DamageOf(run *journal.Run) (*record.Damage, error) {
	d, _, err := damageOf(run, &journal.ResultEnd{}, nil)
	return d, err
}

// extent is the part of a journal that a result describes.
type extent struct {
	last    int64 // number of the last event, including lost ones
	matches bool  // the line at the result's end is the one that the result describes, or lost
}

// damageOf returns the damage of a journal. It adds the stored contents to which lines refer to
// refs, unless that is nil.
func damageOf(run *journal.Run, end *journal.ResultEnd, refs map[record.Blob]bool) (d *record.Damage, e extent, err error) {
	r, err := run.Journal()
	if err != nil {
		return nil, e, err
	}
	defer r.Close()
	d, e.matches = &record.Damage{}, true
	for {
		line, number, _, err := r.Next()
		var damaged *journal.DamagedError
		switch {
		case errors.Is(err, io.EOF):
			d.Events += r.Last() - e.last
			e.last = r.Last()
			addUnverifiable(d, r)
			return d, e, nil
		case errors.As(err, &damaged):
			addDamage(d, damaged)
		case err != nil:
			return nil, e, err
		default:
			d.Events += number - e.last - 1
			e.last = number
			if refs != nil {
				addRefs(refs, line)
			}
			if number == end.Number {
				e.matches = end.Matches(r.Mark())
			}
		}
	}
}

// addUnverifiable adds why the record cannot be verified. A missing key is damage: without it,
// nobody knows whether waza wrote the record, or which lines must have digests.
func addUnverifiable(d *record.Damage, r *journal.Reader) {
	d.Unverifiable = r.Unverifiable()
	if fault := r.KeyFault(); fault != nil {
		d.Files = append(d.Files, record.DamagedFile{File: journal.KeyFile, Error: FileFault(fault)})
	}
}

// The faults of a result.json that is not that of the journal.
const (
	otherJournal = "it describes another journal"
	olderResult  = "it is older than the journal"
)

// Damage checks all files of the run's record, but decodes little.
func (r *RecordedRun) Damage() (*record.Damage, error) {
	// result.json is read first, because the journal is written before it.
	head, broken, err := r.readResultHead()
	if err != nil {
		return nil, err
	}
	end := &journal.ResultEnd{}
	if head != nil {
		end = &head.end
	}
	var refs map[record.Blob]bool
	if !r.Run.Busy() { // the contents of an active run are read at its end
		refs = map[record.Blob]bool{}
	}
	d, e, err := damageOf(r.Run, end, refs)
	if err != nil {
		return nil, err
	}
	if end.Number > e.last {
		d.Events += end.Number - e.last
		d.Ends = true
	}
	if head != nil && !e.matches {
		broken = &record.DamagedFile{File: "result.json", Error: otherJournal}
	}
	if head != nil && broken == nil && !r.Run.Busy() {
		old, err := r.superseded(head)
		if err != nil {
			return nil, err
		}
		if old {
			broken = &record.DamagedFile{File: "result.json", Error: olderResult}
		}
	}
	if r.Broken != nil {
		d.Files = append(d.Files, *r.Broken)
	}
	if broken != nil {
		broken.Restored = d.Events == 0
		d.Files = append(d.Files, *broken)
	}
	var lost *journal.FileError
	switch err := r.Run.CheckContents(refs); {
	case errors.As(err, &lost):
		d.Files = append(d.Files, record.DamagedFile{File: lost.File, Error: FileFault(err)})
	case err != nil:
		return nil, err
	}
	return d.OrNil(), nil
}

// addRefs adds the stored contents to which a line refers.
func addRefs(refs map[record.Blob]bool, line []byte) {
	if !bytes.Contains(line, []byte(`"length":`)) {
		return
	}
	var e struct {
		Trial struct {
			Blobs     *storedBlobs
			Workspace *record.Snapshot
		}
	}
	if json.Unmarshal(line, &e) != nil {
		return // readers of the line report that
	}
	for b := range e.Trial.Blobs.all() {
		refs[*b] = true
	}
	if w := e.Trial.Workspace; w != nil {
		for _, entry := range slices.Concat(w.Entries, w.Removed) {
			for _, b := range []*record.Blob{entry.Blob, entry.Before} {
				if b != nil && b.Length > 0 {
					refs[*b] = true
				}
			}
		}
	}
}

func addDamage(d *record.Damage, e *journal.DamagedError) {
	if d.Parts == 0 {
		d.Line, d.Offset, d.Error = e.Line, e.Offset, e.Err.Error()
	}
	d.Parts++
	d.Bytes += e.Length
}
