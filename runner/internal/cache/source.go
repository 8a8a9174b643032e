package cache

import (
	"errors"
	"slices"

	"waza/runner/catalog"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

// source is a run whose trials can be reused. Its files stay open, so the run can be removed in
// the meantime. It is safe for concurrent use.
type source struct {
	ID    string
	rec   *record.Run
	st    *replay.State
	files *replay.Trials
	Blobs *journal.BlobReader
	tasks map[string]int // indexes, by hash of execution
}

// recording is the position of a trial in a run that recorded it.
type recording struct {
	From    *source
	at      replay.Place
	hash    string         // hash of its task
	verdict record.Verdict // always cacheable
	Origin  string         // the run that executed it
	// earlier are the positions of records that amendments replaced, oldest first.
	earlier []replay.Place
}

// openSource reads the state of a run, which may still be active.
func openSource(runs *catalog.Catalog, id string) (*source, error) {
	h, err := runs.Run(id)
	if err != nil {
		return nil, err
	}
	src := &source{ID: id, rec: h.Record(), tasks: map[string]int{}}
	run, err := runs.Store.Open(id)
	if err != nil {
		return nil, err
	}
	if _, past := h.(*replay.RecordedRun); past {
		src.st, err = replay.Refold(run, src.rec)
	} else {
		_, src.st, err = replay.StateOf(h)
	}
	if err == nil && src.st.Unverifiable != "" { // anyone could have written its trials
		err = errors.New(src.st.Unverifiable)
	}
	if err != nil {
		return nil, err
	}
	for i, t := range src.rec.Tasks {
		if t.Execution != "" { // records of older versions have no hash
			src.tasks[t.Execution] = i
		}
	}
	if src.files, err = replay.OpenTrials(run); err != nil {
		return nil, err
	}
	if src.Blobs, err = run.Blobs(); err != nil {
		return nil, errors.Join(err, src.files.Close())
	}
	return src, nil
}

func (s *source) close() {
	s.files.Close()
	s.Blobs.Close()
}

// find returns the trial with the given number of the task with that execution, if it can be
// reused.
func (s *source) find(execution string, num int) (recording, bool) {
	task, ok := s.tasks[execution]
	if !ok {
		return recording{}, false
	}
	ref := &s.rec.Tasks[task]
	n := num - ref.First
	if n < 0 || n >= len(s.st.Tasks[task].Trials) {
		return recording{}, false
	}
	found := recording{From: s, at: s.st.Tasks[task].Trials[n], hash: ref.Hash, Origin: s.ID}
	found.earlier = s.st.Earlier[replay.KeyOf(task, n)]
	var t replay.LeanTrial
	if found.at.Size == 0 || t.Read(s.files, found.at) != nil {
		return found, false
	}
	if found.verdict = t.Verdict; t.Cached != nil {
		found.Origin = t.Cached.RunID
	}
	return found, t.Reusable() && t.Hash == TrialHash(ref.Hash, num)
}

// Trial reads the whole trial.
func (r *recording) Trial() (*record.Trial, error) {
	res := new(record.Trial)
	return res, r.From.files.Decode(r.at, res)
}

// Grades returns the graders' results for the trial, newest first. It skips unreadable results,
// because they are useful but not required.
func (r *recording) Grades() [][]record.Grade {
	var list [][]record.Grade
	for _, at := range slices.Backward(append(slices.Clone(r.earlier), r.at)) {
		var res replay.LeanTrial
		if res.Read(r.From.files, at) == nil {
			list = append(list, res.Graders)
		}
	}
	return list
}
