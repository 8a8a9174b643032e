package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

// Info describes a run in the list of runs.
type Info struct {
	RunID     string          `json:"runId"`
	Status    record.Status   `json:"status"`
	Suite     record.SuiteRef `json:"suite"`
	Executor  string          `json:"executor"`
	Agent     string          `json:"agent,omitempty"`
	Model     string          `json:"model,omitempty"`
	Models    []string        `json:"models,omitempty"` // only in a matrix with several models
	StartedAt time.Time       `json:"startedAt"`
	EndedAt   *time.Time      `json:"endedAt"`
	// DurationMS is the duration of the run, as in its summary; nil while it is active.
	DurationMS *int64        `json:"durationMs"`
	Tasks      record.Counts `json:"tasks"`
	Trials     record.Counts `json:"trials"`
	// Suspicious is the number of trials that passed with suspicious moves, as in the summary; 0 until
	// the run has completed.
	Suspicious int `json:"suspicious,omitempty"`
	// Damage describes the damaged parts of the record; absent without damage.
	Damage *record.Damage `json:"damage,omitempty"`
	// Ahead reports whether the run is dated in the future, so that its age is unknown. Lists
	// sort such runs last, and no age limit removes them.
	Ahead bool `json:"ahead,omitempty"`
	// Imported reports whether the results come from a file, and waza executed nothing.
	Imported bool `json:"imported,omitempty"`
}

func newInfo(rec *record.Run, p record.Progress) Info {
	info := Info{
		RunID: rec.RunID, Status: p.Status, Suite: rec.Suite, Executor: rec.Config.Executor, Agent: rec.Config.Agent,
		Model: rec.ModelText(nil), Models: rec.Config.Models,
		StartedAt: p.StartedAt, EndedAt: p.EndedAt, DurationMS: p.TookMS(), Tasks: p.Tasks, Trials: p.Trials, Imported: rec.Imported != nil,
	}
	if p.Summary != nil {
		info.Suspicious = p.Summary.Suspicious
	}
	return info
}

// Filter chooses runs. The zero value chooses all.
type Filter struct {
	// Status is the required status of runs. Path is the required path of their suite file.
	// Empty means any.
	Status record.Status
	Path   string
	// Limit is the maximum number of chosen runs, newest first; 0 means all.
	Limit int
}

// takes reports whether f chooses a run, ignoring the limit.
func (f Filter) takes(info *Info) bool {
	return (f.Status == "" || f.Status == info.Status) && (f.Path == "" || f.Path == info.Suite.Path)
}

// List returns the runs of the state directory, newest first. A positive limit limits their
// number. It is [Catalog.ListBy] with only a limit.
func (r *Catalog) List(limit int) ([]Info, error) { return r.ListBy(Filter{Limit: max(0, limit)}) }

// listBlock is the number of runs that a filtered list checks before it compares with the limit.
const listBlock = 512

// ListBy returns the chosen runs of the state directory, newest first, including runs with a
// damaged record. Runs dated in the future come last. A cancelled run of this process has the
// status cancelled at once, even while its processes are being killed.
func (r *Catalog) ListBy(f Filter) ([]Info, error) {
	ids, err := r.Store.List()
	if err != nil {
		return nil, err
	}
	l := &lister{runs: r, memo: loadMemo(r.Store), filter: f, needles: f.needles()}
	defer func() {
		if err := l.memo.save(r.Store, ids); err != nil {
			r.log.Debug("cannot write the catalog of runs", "error", err)
		}
	}()
	size := listBlock
	if f.Limit > 0 && len(l.needles) == 0 {
		size = min(size, f.Limit)
	}
	infos := []Info{}
	for block := range slices.Chunk(ids, size) {
		infos = append(infos, l.listRuns(block)...)
		if f.Limit > 0 && len(infos) >= f.Limit {
			return infos[:f.Limit], nil
		}
	}
	return infos, nil
}

// ReadInfo returns the Info of one run; ok is false when the run does not exist. For an interrupted
// run it reads the whole journal.
func (r *Catalog) ReadInfo(id string) (info Info, ok bool) {
	if !journal.ValidID(id) {
		return Info{}, false
	}
	found := (&lister{runs: r, memo: &memo{}}).run(id)
	found.info.Ahead = journal.IsAhead(id, time.Now())
	return found.info, found.taken
}

// lister creates a list. Its workers only read it.
type lister struct {
	runs    *Catalog
	memo    *memo
	filter  Filter
	needles [][]byte
}

// listed is the result of reading a run.
type listed struct {
	info  Info
	taken bool   // the filter chooses the run
	stamp string // key in the memo; empty when the run must not be added
}

// listRuns lists a block of runs and adds missing ones to the memo. It uses several workers,
// because reading files is mostly waiting.
func (l *lister) listRuns(ids []string) []Info {
	found := make([]listed, len(ids))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(ids)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(ids)); i = next.Add(1) - 1 {
				found[i] = l.run(ids[i])
			}
		})
	}
	workers.Wait()
	now := time.Now()
	var infos []Info
	for i := range found {
		if found[i].stamp != "" {
			l.memo.put(ids[i], found[i].stamp, &found[i].info, readingCost(l.runs.Store.At(ids[i])))
		}
		if found[i].taken {
			found[i].info.Ahead = journal.IsAhead(ids[i], now)
			infos = append(infos, found[i].info)
		}
	}
	return infos
}

// run reads one run. It does not choose a run that was removed in the meantime.
func (l *lister) run(id string) listed {
	if live := l.runs.live(id); live != nil {
		p, _ := live.Progress() // never fails for a live run
		info := newInfo(live.Record(), p)
		info.Status = live.Status()
		return listed{info: info, taken: l.filter.takes(&info)}
	}
	run := l.runs.Store.At(id)
	stamp, result := run.Stamp() // before reading: later changes produce another stamp
	if b, ok := l.memo.find(id, stamp); ok && (result || !run.Alive()) {
		for _, needle := range l.needles {
			if !bytes.Contains(b, needle) {
				return listed{}
			}
		}
		var info Info
		if json.Unmarshal(b, &info) == nil && info.RunID == id {
			return listed{info: info, taken: l.filter.takes(&info)}
		}
	}
	return l.read(run, id, stamp)
}

// read reads the files of a run.
func (l *lister) read(run *journal.Run, id, stamp string) listed {
	rec, err := replay.OpenFiles(run)
	if err != nil {
		return listed{} // the run was removed
	}
	p, err := rec.Progress()
	info := newInfo(rec.Rec, p)
	info.RunID = id
	if err == nil {
		info.Damage, err = rec.Damage()
	}
	switch {
	case errors.Is(err, record.ErrRunNotFound):
		return listed{}
	case err != nil:
		info.Status, info.StartedAt = record.StatusInterrupted, rec.Rec.CreatedAt
		info.Damage, stamp = &record.Damage{Files: []record.DamagedFile{{File: "journal.jsonl", Error: replay.FileFault(err)}}}, ""
	}
	if info.Status == record.StatusRunning {
		stamp = ""
	}
	return listed{info, l.filter.takes(&info), stamp}
}
