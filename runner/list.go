package runner

import "time"

// Info is a line of the list of runs.
type Info struct {
	RunID     string     `json:"runId"`
	Status    Status     `json:"status"`
	Suite     SuiteRef   `json:"suite"`
	Executor  string     `json:"executor"`
	Agent     string     `json:"agent,omitempty"`
	Model     string     `json:"model,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
	Tasks     Counts     `json:"tasks"`
	Trials    Counts     `json:"trials"`
}

// List returns the runs of the state directory, newest first, at most limit
// when that is positive. Runs whose files cannot be read are left out. A run of this
// runner that was cancelled is, from then on, even while its processes are being ended.
func (r *Runner) List(limit int) ([]Info, error) {
	ids, err := r.store.List()
	if err != nil {
		return nil, err
	}
	infos := []Info{}
	for _, id := range ids {
		if limit > 0 && len(infos) == limit {
			break
		}
		h, err := r.Run(id)
		if err != nil {
			continue
		}
		p, err := h.Progress()
		if err != nil {
			continue
		}
		status := p.Status
		if run, ok := h.(*Run); ok && status == StatusRunning && run.Cancelled() {
			status = StatusCancelled
		}
		rec := h.Record()
		infos = append(infos, Info{
			RunID: id, Status: status, Suite: rec.Suite, Executor: rec.Config.Executor, Agent: rec.Config.Agent, Model: rec.Config.Model,
			StartedAt: p.StartedAt, EndedAt: p.EndedAt, Tasks: p.Tasks, Trials: p.Trials,
		})
	}
	return infos, nil
}
