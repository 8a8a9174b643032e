package runner

import (
	"bytes"
	"encoding/json"
	"time"
)

// Info is a line of the list of runs.
type Info struct {
	RunID     string     `json:"runId"`
	Status    Status     `json:"status"`
	Suite     SuiteRef   `json:"suite"`
	Executor  string     `json:"executor"`
	Agent     string     `json:"agent,omitempty"`
	Model     string     `json:"model,omitempty"`
	Models    []string   `json:"models,omitempty"` // of a matrix that has several
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
	Tasks     Counts     `json:"tasks"`
	Trials    Counts     `json:"trials"`
}

func newInfo(rec *Record, p Progress) Info {
	return Info{
		RunID: rec.RunID, Status: p.Status, Suite: rec.Suite, Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.Config.Model, Models: rec.Config.Models,
		StartedAt: p.StartedAt, EndedAt: p.EndedAt, Tasks: p.Tasks, Trials: p.Trials,
	}
}

// Filter chooses runs. The zero value chooses all.
type Filter struct {
	// Status is the one that runs must have, Path the suite file they must be
	// of; empty means any.
	Status Status
	Path   string
	// Limit is how many of the newest are chosen, at most; 0 means all.
	Limit int
}

// takes reports whether a run is chosen, whatever the limit.
func (f Filter) takes(info *Info) bool {
	return (f.Status == "" || f.Status == info.Status) && (f.Path == "" || f.Path == info.Suite.Path)
}

// mayTake is takes for an Info that is not decoded: false when it would not take it.
func (f Filter) mayTake(raw []byte) bool {
	return (f.Status == "" || bytes.Contains(raw, member("status", string(f.Status)))) && (f.Path == "" || bytes.Contains(raw, member("path", f.Path)))
}

func member(name, value string) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return append([]byte(`"`+name+`":`), b...)
}

// List returns the runs of the state directory, newest first, at most limit
// when that is positive. It is [Runner.ListBy] with that limit alone.
func (r *Runner) List(limit int) ([]Info, error) { return r.ListBy(Filter{Limit: max(0, limit)}) }

// ListBy returns the chosen runs of the state directory, newest first. Runs whose
// files cannot be read are left out. A run of this runner that was cancelled is,
// from then on, even while its processes are being ended.
func (r *Runner) ListBy(f Filter) ([]Info, error) {
	ids, err := r.store.List()
	if err != nil {
		return nil, err
	}
	c := r.loadCatalog()
	defer r.saveCatalog(c, ids)
	infos := []Info{}
	for _, id := range ids {
		if f.Limit > 0 && len(infos) == f.Limit {
			break
		}
		if info, ok := r.info(c, id, f); ok && f.takes(&info) {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// info tells of one run; false when it cannot be read, or is not chosen.
func (r *Runner) info(c *catalog, id string, f Filter) (Info, bool) {
	if live := r.Live(id); live != nil {
		info := newInfo(live.rec, live.fold.progress())
		info.Status = live.status()
		return info, true
	}
	run := r.store.At(id)
	stamp, result := run.Stamp() // before reading: what comes afterwards has another
	if e, ok := c.find(id, stamp); ok && (result || !run.Alive()) {
		if !f.mayTake(e.info) {
			return Info{}, false
		}
		if info, ok := e.decode(id); ok {
			return info, true
		}
	}
	rec, err := openRecorded(run)
	if err != nil {
		return Info{}, false
	}
	p, err := rec.Progress()
	if err != nil {
		return Info{}, false
	}
	info := newInfo(rec.rec, p)
	info.RunID = id
	if info.Status != StatusRunning {
		c.put(id, stamp, &info)
	}
	return info, true
}
