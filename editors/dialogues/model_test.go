//go:build unix

package dialogues_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

// model is a client's state of runs, built from the messages it received. It is the reference
// for the models of all clients, and is compared with the daemon's replies.
type model struct {
	Runs  map[string]*run `json:"runs"`
	Error *failure        `json:"error,omitempty"` // of the latest request
}

type run struct {
	Status string           `json:"status"`
	Seq    int64            `json:"seq"`
	Tasks  map[string]*task `json:"tasks"`
	Log    int              `json:"log"`
	// LastLog is the last logged text, Error why the run did not complete.
	LastLog string `json:"lastLog,omitempty"`
	Error   string `json:"error,omitempty"`
}

type task struct {
	Name    string            `json:"name"`
	Verdict string            `json:"verdict"`
	Passed  int               `json:"passed"`
	Trials  map[string]string `json:"trials"`
	total   int
}

type failure struct {
	Code        int64        `json:"code"`
	Message     string       `json:"message"`
	Diagnostics []diagnostic `json:"diagnostics,omitempty"`
}

type diagnostic struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Severity string `json:"severity"`
	Code     string `json:"code"`
}

// message is any message, with the members that a client must understand.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params params          `json:"params"`
	Error  *struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Diagnostics []diagnostic `json:"diagnostics"`
		} `json:"data"`
	} `json:"error"`
}

type params struct {
	RunID       string `json:"runId"`
	Seq         int64  `json:"seq"`
	Event       string `json:"event"`
	TaskID      string `json:"taskId"`
	TaskName    string `json:"taskName"`
	TrialNum    int    `json:"trialNum"`
	TotalTrials int    `json:"totalTrials"`
	KeptTrials  int    `json:"keptTrials"`
	Status      string `json:"status"`
	Message     string `json:"message"`
	Error       string `json:"error"`
}

func (m *model) asked() { m.Error = nil }

func (m *model) expect(t *testing.T) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return b
}

// hear applies a message of the server.
func (m *model) hear(t *testing.T, text json.RawMessage) {
	t.Helper()
	var msg message
	require.NoError(t, json.Unmarshal(text, &msg))
	if msg.Error != nil {
		m.Error = &failure{msg.Error.Code, msg.Error.Message, msg.Error.Data.Diagnostics}
	}
	p := &msg.Params
	if msg.ID != nil || p.RunID == "" || p.Seq == 0 {
		return
	}
	r := m.Runs[p.RunID]
	if r == nil {
		r = &run{Status: "running", Tasks: map[string]*task{}}
		m.Runs[p.RunID] = r
	}
	if p.Seq <= r.Seq {
		return // received before
	}
	if msg.Method == "eval.complete" && p.Status == "interrupted" {
		// The journal does not contain it: if the run resumes, the next event has its number.
		r.Status, r.Error = p.Status, p.Error
		return
	}
	r.Seq = p.Seq
	switch msg.Method {
	case "eval.log":
		r.Log++
		r.LastLog = p.Message
	case "eval.complete":
		r.Status, r.Error = p.Status, p.Error
	case "eval.progress":
		r.progress(p)
	}
}

func (r *run) progress(p *params) {
	switch p.Event {
	case "run_resumed":
		r.resumed(p.KeptTrials)
	case "task_start":
		r.task(p).Verdict = "running"
	case "trial_start":
		r.task(p).Trials[strconv.Itoa(p.TrialNum)] = "running"
	case "trial_complete":
		r.task(p).Trials[strconv.Itoa(p.TrialNum)] = p.Status
	case "task_complete":
		r.task(p).Verdict = p.Status
	}
	for _, t := range r.Tasks {
		t.count()
	}
}

func (r *run) task(p *params) *task {
	t := r.Tasks[p.TaskID]
	if t == nil {
		t = &task{Name: p.TaskName, Verdict: "running", Trials: map[string]string{}}
		r.Tasks[p.TaskID] = t
	}
	t.total = p.TotalTrials
	return t
}

func (t *task) count() {
	t.Passed = 0
	for _, verdict := range t.Trials {
		if verdict == "passed" {
			t.Passed++
		}
	}
}

// resumed removes everything that no longer counts: trials without a final verdict, and tasks
// with such trials. If fewer trials are kept than that, the suite has changed, and all earlier
// trials are removed.
func (r *run) resumed(kept int) {
	r.Status, r.Error = "running", ""
	n := 0
	for _, t := range r.Tasks {
		for num, verdict := range t.Trials {
			if keepable(verdict) {
				n++
			} else {
				delete(t.Trials, num)
			}
		}
	}
	for id, t := range r.Tasks {
		switch {
		case n != kept || len(t.Trials) == 0:
			delete(r.Tasks, id)
		case len(t.Trials) < t.total:
			t.Verdict = "running"
		}
	}
}

func keepable(verdict string) bool {
	switch verdict {
	case "passed", "failed", "timeout", "needs_review":
		return true
	}
	return false
}

// result is the result of run.result.
type result struct {
	Status string
	Tasks  []struct {
		ID, Name, Verdict string
		Trials            []struct {
			TrialNum int
			Verdict  string
		}
	}
}

// agree checks the client's model of a run that is over.
func (res *result) agree(t *testing.T, r *run) {
	t.Helper()
	require.Equal(t, res.Status, r.Status)
	known := map[string]*task{}
	for _, reported := range res.Tasks {
		if reported.Verdict == "" {
			continue // it never started
		}
		k := &task{Name: reported.Name, Verdict: reported.Verdict, Trials: map[string]string{}}
		for _, trial := range reported.Trials {
			k.Trials[strconv.Itoa(trial.TrialNum)] = trial.Verdict
		}
		k.count()
		known[reported.ID] = k
	}
	require.Empty(t, cmp.Diff(known, r.Tasks, cmpopts.IgnoreUnexported(task{})))
}
