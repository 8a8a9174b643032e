// Package cache finds trials of recorded runs that need not be executed again. Call [Find] with
// the tasks of a plan, and close the [Cache] when the run has ended.
package cache

import (
	"errors"
	"log/slog"

	"waza/runner/catalog"
	"waza/runner/record"
)

// The cache has no store of its own. It consists of the recorded runs, which are found through
// an index. A trial is found by the hash of its execution and its number. The hash of its
// grading then determines the remaining work:
//
//	hash of execution  of grading   the trial is
//	different          any          executed
//	the same           different    reused and graded again
//	the same           the same     reused as it is
//
// An amendment can change the results of a trial. The hash of its grading is then no longer
// valid, so the trial is graded again. This restores the answers of judges and people.

// Limits of the search for earlier trials: the number of runs to search for one task, newest
// first, and the number of runs that stay open for all tasks.
const (
	maxHolders = 20
	maxSources = 64
)

// A Hit is a trial of earlier runs that need not be executed again.
type Hit struct {
	// Records are all of the same execution, newest first. Several runs can have recorded it:
	// the one that executed it and those that reused it, with other graders.
	Records []recording
	// graded is the index of the newest record that was graded like today; -1 for none.
	graded int
}

// Record returns the record that is reused.
func (e *Hit) Record() *recording { return &e.Records[max(0, e.graded)] }

// AsIs reports whether the trial is reused as it is recorded. A trial that waits for a person is
// graded again if another record may contain the person's score.
func (e *Hit) AsIs() bool {
	return e.graded >= 0 && (e.Record().verdict != record.NeedsReview || len(e.Records) == 1)
}

// settled reports whether older runs cannot improve the hit. A nil hit is not settled.
func (e *Hit) settled() bool {
	return e != nil && e.graded >= 0 && e.Record().verdict != record.NeedsReview
}

// better returns the better of the hit so far, which may be nil, and the finding of an older run.
// The newest execution that was graded like today is best, then the newest.
func (e *Hit) better(found recording, hash string) *Hit {
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

// A Cache holds the trials that a plan can reuse. Only one goroutine may use it until the run
// starts. Afterwards it does not change.
type Cache struct {
	// Tasks holds the hits of each wanted task by trial number.
	Tasks   []map[int]*Hit
	runs    *catalog.Catalog
	log     *slog.Logger
	sources map[string]*source // by run id; nil for a run that cannot be used
	open    int
}

// Task is a task whose trials may exist in earlier runs.
type Task struct {
	// Execution and Hash identify the task by its content, like in a plan.
	Execution, Hash string
	// Trials is the number of trials. First is the number of the first trial.
	Trials, First int
}

// Find returns the trials of the wanted tasks that recorded runs contain. It skips what it
// cannot read. Close the cache when it is no longer used.
func Find(runs *catalog.Catalog, wanted []Task, log *slog.Logger) *Cache {

	c := &Cache{runs: runs, log: log, sources: map[string]*source{}}
	var hashes []string
	for _, t := range wanted {
		hashes = append(hashes, t.Execution)
	}
	holders, err := runs.Store.Index().Runs(hashes)
	if err != nil {
		log.Warn("cannot read the cache", "error", err)
	}
	for _, t := range wanted {
		c.Tasks = append(c.Tasks, c.find(t, holders[t.Execution]))
	}
	return c
}

// find searches runs, newest first, for the trials of a task until all are found.
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
					e = e.better(found, t.Hash)
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

// Close closes the files of the runs. A nil Cache is allowed.
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

// source opens a run that may contain trials. It returns nil if the run is missing or damaged,
// or if too many are open.
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
				c.log.Warn("cannot read a run; its trials are not reused", "run", id, "error", err)
			}
		}
	}
	if src != nil {
		c.open++
	}
	c.sources[id] = src
	return src
}
