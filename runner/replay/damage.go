package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"waza/runner/journal"
	"waza/runner/record"
)

// A checker collects the damage of a journal while it is read.
type checker struct {
	damage record.Damage
	end    journal.ResultEnd // of the result that describes the journal; zero without one
	// refs are the stored contents to which lines refer; nil if nobody needs them.
	refs map[record.Blob]bool

	last int64 // number of the last event, including lost ones
	// matches reports whether the line at the result's end is the one that the result describes, or
	// lost.
	matches bool
}

// newChecker returns the checker of a journal with a result, whose head may be nil.
func newChecker(head *resultHead, refs map[record.Blob]bool) *checker {
	c := &checker{matches: true, refs: refs}
	if head != nil {
		c.end = head.end
	}
	return c
}

// next returns the next undamaged line like [journal.Reader.NextUndamaged].
func (c *checker) next(r *journal.Reader) (line []byte, number, offset int64, err error) {
	for {
		line, number, offset, err = r.Next()
		var damaged *journal.DamagedError
		switch {
		case err == nil:
			c.damage.Events += number - c.last - 1
			c.last = number
			if c.refs != nil {
				addRefs(c.refs, line)
			}
			if number == c.end.Number {
				c.matches = c.end.Matches(r.Mark())
			}
		case errors.Is(err, io.EOF):
			c.damage.Events += r.Last() - c.last
			c.last = r.Last()
			addUnverifiable(&c.damage, r)
		case errors.As(err, &damaged):
			addDamage(&c.damage, damaged)
			continue
		}
		return line, number, offset, err
	}
}

// readAll reads the journal only to check it.
func (c *checker) readAll(run *journal.Run) error {
	r, err := run.Journal()
	if err != nil {
		return err
	}
	defer r.Close()
	r.ReadAhead()
	for err == nil {
		_, _, _, err = c.next(r)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
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
	stamp := r.Run.ReadingStamp()
	if known := r.memory.recall(stamp).damage; known != nil {
		return known.copied(), nil
	}
	c := r.memory.recall(stamp).journal
	var head *resultHead
	var broken *record.DamagedFile
	var err error
	if c != nil {
		head, broken, err = r.readResultHead()
	} else {
		c, head, broken, err = r.readBoth(func(c *checker) error { return c.readAll(r.Run) })
	}
	if err != nil {
		return nil, err
	}
	d, err := r.damage(head, broken, c, r.Run.Busy())
	if err != nil {
		return nil, err
	}
	known := &damageRead{d}
	r.memory.learn(stamp, func(k *knowledge) { k.damage, k.journal = known, nil })
	return known.copied(), nil
}

// readBoth calls read to read the journal with a checker. Meanwhile it verifies result.json, which
// takes a second per gigabyte, as the journal does.
func (r *RecordedRun) readBoth(read func(c *checker) error) (
	c *checker, head *resultHead, broken *record.DamagedFile, err error,
) {
	var refs map[record.Blob]bool
	if !r.Run.Busy() { // the contents of an active run are read at its end
		refs = map[record.Blob]bool{}
	}
	c = newChecker(nil, refs)
	// The result's end is read before the journal, because the journal is written before the result.
	if f, err := r.Run.Result(); err == nil {
		c.end = f.ResultEnd
		f.Close()
	}
	var verifying sync.WaitGroup
	var headErr error
	verifying.Go(func() { head, broken, headErr = r.readResultHead() })
	err = read(c)
	verifying.Wait()
	if err = cmp.Or(headErr, err); err != nil {
		return nil, nil, nil, err
	}
	switch {
	case head == nil: // the end may be wrong
		c.end, c.matches = journal.ResultEnd{}, true
	case head.end != c.end: // the file was replaced meanwhile
		c = newChecker(head, refs)
		err = read(c)
	}
	return c, head, broken, err
}

// damage returns the damage of the record, whose journal was read with the checker. head and broken
// are from readResultHead. The result of a run that another process changes can be old.
func (r *RecordedRun) damage(head *resultHead, broken *record.DamagedFile, c *checker, changes bool) (*record.Damage, error) {
	d := shallow(&c.damage)
	d.Files = slices.Clone(d.Files)
	if c.end.Number > c.last {
		d.Events += c.end.Number - c.last
		d.Ends = true
	}
	if head != nil && !c.matches {
		broken = &record.DamagedFile{File: "result.json", Error: otherJournal}
	}
	if head != nil && broken == nil && !changes {
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
	switch err := r.Run.CheckContents(c.refs); {
	case errors.As(err, &lost):
		d.Files = append(d.Files, record.DamagedFile{File: lost.File, Error: FileFault(err)})
	case err != nil:
		return nil, err
	}
	return d.OrNil(), nil
}

// addRefs adds the stored contents to which a line refers.
func addRefs(refs map[record.Blob]bool, line []byte) {
	if !bytes.Contains(line, []byte(`length":`)) { // starts with a rare character, so that most bytes are skipped
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
