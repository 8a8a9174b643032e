// Package cache finds trials of recorded runs that need not be executed again. Call
// [Find] with the tasks of a plan, and close the [Cache] when the run has ended.
package cache

import (
	"errors"
	"log/slog"

	"waza/runner/catalog"
	"waza/runner/record"
)

// The cache has no store of its own: it is the recorded runs, which an index
// leads to. A trial that was done before is found by the hash of its execution
// and its number, and what is left to do depends on how it was graded:
//
//	hash of execution  of grading   the trial is
//	another            any          executed
//	the same           another      taken over, and graded anew
//	the same           the same     taken over as it is
//
// Where an amendment changed what graders say of a trial, that is no longer what
// the hash of its grading stands for: it is graded anew, which brings back what
// judges and persons said of it.

// Bounds on the search for earlier trials: runs that are looked at for one task,
// newest first, and runs that stay open for all.
const (
	maxHolders = 20
	maxSources = 64
)

// Hit is what earlier runs recorded of a trial that need not be executed again.
type Hit struct {
	// Records are of one execution, newest first: a run that took the trial over
	// recorded it, too, and its graders may have been others.
	Records []recording
	// graded is the index of the newest that is graded as today; -1 for none.
	graded int
}

// Record is the one that is taken over.
func (e *Hit) Record() *recording { return &e.Records[max(0, e.graded)] }

// AsIs reports whether the trial is taken over as it is recorded. One that waits
// for a person is graded anew where another record may hold the person's score.
func (e *Hit) AsIs() bool {
	return e.graded >= 0 && (e.Record().verdict != record.NeedsReview || len(e.Records) == 1)
}

// settled reports whether older runs have nothing to add; nil is not.
func (e *Hit) settled() bool {
	return e != nil && e.graded >= 0 && e.Record().verdict != record.NeedsReview
}

// or is the better of what was found so far, which may be nil, and of what an older
// run has: the newest execution that was graded as today, else the newest.
func (e *Hit) or(found recording, hash string) *Hit {
	graded := found.hash == hash && len(found.earlier) == 0
	next := &Hit{Records: []recording{found}, graded: -1}
	if graded {
		next.graded = 0
	}
	switch {
	case e == nil:
		return next
	case e.Record().Origin != found.Origin && e.graded < 0 && graded:
		return next
	case e.Record().Origin != found.Origin:
		return e
	case graded && e.graded < 0:
		e.graded = len(e.Records)
	}
	e.Records = append(e.Records, found)
	return e
}

// Cache gathers what a plan can take over. It belongs to one goroutine until the
// run starts; then nothing of it changes.
type Cache struct {
	// Tasks holds for each wanted task its trials, by number.
	Tasks   []map[int]*Hit
	runs    *catalog.Catalog
	log     *slog.Logger
	sources map[string]*source // by run; nil for one that is of no use
	open    int
}

// Task is a task whose trials may have been done before.
type Task struct {
	// Execution and Hash name the task by its content, as a plan names its tasks.
	Execution, Hash string
	// Trials is how many there are, First the number of the first.
	Trials, First int
}

// Find returns which trials of the wanted tasks recorded runs have done. What
// cannot be read is left out. Close the cache when nothing more is taken from it.
func Find(runs *catalog.Catalog, wanted []Task, log *slog.Logger) *Cache {

	c := &Cache{runs: runs, log: log, sources: map[string]*source{}}
	var hashes []string
	for _, t := range wanted {
		hashes = append(hashes, t.Execution)
	}
	holders, err := runs.Store.Holders(hashes)
	if err != nil {
		log.Warn("the cache cannot be read", "error", err)
	}
	for _, t := range wanted {
		c.Tasks = append(c.Tasks, c.find(t, holders[t.Execution]))
	}
	return c
}

// find looks for the trials of a task in runs, newest first, until all are found.
func (c *Cache) find(t Task, runs []string) map[int]*Hit {
	earlier := map[int]*Hit{}
	for _, id := range runs[:min(len(runs), maxHolders)] {
		src := c.source(id)
		if src == nil {
			continue
		}
		settled := 0
		for num := t.First; num < t.First+t.Trials; num++ {
			e := earlier[num]
			if !e.settled() {
				if found, ok := src.find(t.Execution, num); ok {
					e = e.or(found, t.Hash)
					earlier[num] = e
				}
			}
			if e.settled() {
				settled++
			}
		}
		if settled == t.Trials {
			break
		}
	}
	return earlier
}

// Close lets go of the runs; nil is fine.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	for _, src := range c.sources {
		if src != nil {
			src.close()
		}
	}
}

// source opens a run that may hold trials; nil when it is gone, damaged, or one
// too many.
func (c *Cache) source(id string) *source {
	if src, known := c.sources[id]; known {
		return src
	}
	var src *source
	if c.open < maxSources {
		var err error
		if src, err = openSource(c.runs, id); err != nil {
			src = nil
			if !errors.Is(err, record.ErrRunNotFound) {
				c.log.Warn("nothing is taken over from a run that cannot be read", "run", id, "error", err)
			}
		}
	}
	if src != nil {
		c.open++
	}
	c.sources[id] = src
	return src
}
