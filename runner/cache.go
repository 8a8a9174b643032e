package runner

import (
	"errors"
	"log/slog"
	"slices"
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

// CachedFrom tells where a trial was taken over from.
type CachedFrom struct {
	// RunID is the run whose executor did the trial. It may be gone.
	RunID string `json:"runId"`
	// Spent is what was spent on the trial before it was taken over.
	Spent *Ledger `json:"spent,omitempty"`
}

// cacheable reports whether a trial that ended so may be taken over by later runs.
func (v Verdict) cacheable() bool { return v == Passed || v == Failed || v == NeedsReview }

// earlierTrial is a trial of earlier runs that need not be executed again.
type earlierTrial struct {
	// records are of one execution, newest first: a run that took the trial over
	// recorded it, too, and its graders may have been others.
	records []recordedTrial
	// graded is the index of the newest that is graded as today; -1 for none.
	graded int
}

// record is the one that is taken over.
func (e *earlierTrial) record() *recordedTrial { return &e.records[max(0, e.graded)] }

// asIs reports whether the trial is taken over as it is recorded. One that waits
// for a person is graded anew where another record may hold the person's score.
func (e *earlierTrial) asIs() bool {
	return e.graded >= 0 && (e.record().verdict != NeedsReview || len(e.records) == 1)
}

// settled reports whether older runs have nothing to add; nil is not.
func (e *earlierTrial) settled() bool {
	return e != nil && e.graded >= 0 && e.record().verdict != NeedsReview
}

// or is the better of what was found so far, which may be nil, and of what an older
// run has: the newest execution that was graded as today, else the newest.
func (e *earlierTrial) or(found recordedTrial, hash string) *earlierTrial {
	graded := found.hash == hash && len(found.earlier) == 0
	next := &earlierTrial{records: []recordedTrial{found}, graded: -1}
	if graded {
		next.graded = 0
	}
	switch {
	case e == nil:
		return next
	case e.record().origin != found.origin && e.graded < 0 && graded:
		return next
	case e.record().origin != found.origin:
		return e
	case graded && e.graded < 0:
		e.graded = len(e.records)
	}
	e.records = append(e.records, found)
	return e
}

// cache gathers what a plan can take over. It belongs to one goroutine until the
// run starts; then nothing of it changes.
type cache struct {
	// Tasks holds for each wanted task its trials, by number.
	Tasks   []map[int]*earlierTrial
	runs    *Catalog
	log     *slog.Logger
	sources map[string]*source // by run; nil for one that is of no use
	open    int
}

// findEarlier notes for each task of the plan which of its trials were done before.
func (p *Plan) findEarlier(r *Planner) {
	wanted := make([]WantedTask, len(p.Tasks))
	for i, t := range p.Tasks {
		wanted[i] = WantedTask{Execution: t.Execution, Hash: t.Hash, First: t.First, Trials: t.Trials}
	}
	p.cache = FindEarlier(r.runs, wanted, r.log)
	for i, t := range p.Tasks {
		t.earlier = p.cache.Tasks[i]
	}
	p.env.Recorded = !p.executes()
}

// WantedTask is a task whose trials may have been done before.
type WantedTask struct {
	// Execution and Hash name the task by its content, see [PlannedTask].
	Execution, Hash string
	// Trials is how many there are, First the number of the first.
	Trials, First int
}

// FindEarlier returns which trials of the wanted tasks recorded runs have done. What
// cannot be read is left out. Close the cache when nothing more is taken from it.
func FindEarlier(runs *Catalog, wanted []WantedTask, log *slog.Logger) *cache {

	c := &cache{runs: runs, log: log, sources: map[string]*source{}}
	var hashes []string
	for _, t := range wanted {
		hashes = append(hashes, t.Execution)
	}
	holders, err := runs.store.Holders(hashes)
	if err != nil {
		log.Warn("the cache cannot be read", "error", err)
	}
	for _, t := range wanted {
		c.Tasks = append(c.Tasks, c.find(t, holders[t.Execution]))
	}
	return c
}

// find looks for the trials of a task in runs, newest first, until all are found.
func (c *cache) find(t WantedTask, runs []string) map[int]*earlierTrial {
	earlier := map[int]*earlierTrial{}
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

// close lets go of the runs; nil is fine.
func (c *cache) close() {
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
func (c *cache) source(id string) *source {
	if src, known := c.sources[id]; known {
		return src
	}
	var src *source
	if c.open < maxSources {
		var err error
		if src, err = openSource(c.runs, id); err != nil {
			src = nil
			if !errors.Is(err, ErrRunNotFound) {
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

// executes reports whether a trial of the task has to be executed.
func (t *PlannedTask) executes() bool {
	for num := t.First; num < t.First+t.Trials; num++ {
		if t.earlier[num] == nil {
			return true
		}
	}
	return false
}

// grades reports whether graders have something to do for the task.
func (t *PlannedTask) grades() bool {
	for num := t.First; num < t.First+t.Trials; num++ {
		if e := t.earlier[num]; e == nil || !e.asIs() {
			return true
		}
	}
	return false
}

// Cached is how many trials are taken over from earlier runs.
func (p *Plan) Cached() int {
	n := 0
	for _, t := range p.Tasks {
		n += len(t.earlier)
	}
	return n
}

// executes reports whether anything has to be executed.
func (p *Plan) executes() bool { return slices.ContainsFunc(p.Tasks, (*PlannedTask).executes) }
