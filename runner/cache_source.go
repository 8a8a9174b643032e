package runner

import (
	"errors"
	"slices"

	"waza/runner/grader"
	"waza/runner/journal"
)

// source is a run that trials may be taken over from. Its files stay open, so
// that it may be removed meanwhile. It is safe for concurrent use.
type source struct {
	id    string
	rec   *Record
	st    *foldState
	files *trialFiles
	blobs *journal.BlobReader
	tasks map[string]int // indexes, by hash of execution
}

// recordedTrial is a trial as a run recorded it.
type recordedTrial struct {
	from    *source
	at      place
	hash    string  // of its task
	verdict Verdict // always a cacheable one
	origin  string  // the run that executed it
	// earlier are the places of what amendments replaced, oldest first.
	earlier []place
}

// openSource reads how a run stands, be it over or not.
func openSource(runs *Catalog, id string) (*source, error) {
	h, err := runs.Run(id)
	if err != nil {
		return nil, err
	}
	src := &source{id: id, rec: h.Record(), tasks: map[string]int{}}
	run, err := runs.store.Open(id)
	if err != nil {
		return nil, err
	}
	if _, past := h.(*recorded); past {
		src.st, err = refold(run, src.rec)
	} else {
		_, src.st, err = StateOf(h)
	}
	if err != nil {
		return nil, err
	}
	for i, t := range src.rec.Tasks {
		if t.Execution != "" { // records of older versions have none
			src.tasks[t.Execution] = i
		}
	}
	if src.files, err = openTrials(run); err != nil {
		return nil, err
	}
	if src.blobs, err = run.Blobs(); err != nil {
		return nil, errors.Join(err, src.files.Close())
	}
	return src, nil
}

func (s *source) close() {
	s.files.Close()
	s.blobs.Close()
}

// recordedHead is what it takes to judge whether a trial can be taken over.
type recordedHead struct {
	Hash    string      `json:"hash"`
	Verdict Verdict     `json:"verdict"`
	Cached  *CachedFrom `json:"cached"`
}

// find returns the trial of that number of the task with that execution, if it
// may be taken over.
func (s *source) find(execution string, num int) (recordedTrial, bool) {
	task, ok := s.tasks[execution]
	if !ok {
		return recordedTrial{}, false
	}
	ref := &s.rec.Tasks[task]
	n := num - ref.First
	if n < 0 || n >= len(s.st.tasks[task].trials) {
		return recordedTrial{}, false
	}
	found := recordedTrial{from: s, at: s.st.tasks[task].trials[n], hash: ref.Hash, origin: s.id}
	found.earlier = s.st.earlier[keyOf(task, n)]
	var head recordedHead
	if found.at.size == 0 || s.files.decode(found.at, &head) != nil {
		return found, false
	}
	if found.verdict = head.Verdict; head.Cached != nil {
		found.origin = head.Cached.RunID
	}
	return found, head.Verdict.cacheable() && head.Hash == trialHash(ref.Hash, num)
}

// trial reads the whole trial.
func (r *recordedTrial) trial() (*TrialResult, error) {
	res := new(TrialResult)
	return res, r.from.files.decode(r.at, res)
}

// grades are what graders made of the trial, the newest first. What cannot be read
// is left out: it is of use, and not needed.
func (r *recordedTrial) grades() [][]grader.Result {
	var list [][]grader.Result
	for _, at := range slices.Backward(append(slices.Clone(r.earlier), r.at)) {
		var res tallied
		if r.from.files.decode(at, &res) == nil {
			list = append(list, res.Graders)
		}
	}
	return list
}
