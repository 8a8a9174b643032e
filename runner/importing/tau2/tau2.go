// Package tau2 reads results of tau2-bench. Simulations become trials.
package tau2

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"waza/runner/importing/source"
	"waza/runner/record"
)

const name = "tau2"

// Format is the format of tau2's results.
var Format = source.Format{
	Name:       name,
	Recognizes: func(h *source.Head) bool { return h.Has("info", "simulations") || isTasks(h) },
	Open:       open,
}

// isTasks reports whether a file has a task, or a list of tasks, in place of results.
func isTasks(h *source.Head) bool {
	return h.Has("id", "user_scenario") || h.First != nil && h.First.Has("id", "user_scenario")
}

// An info describes the run.
type info struct {
	NumTrials source.Number `json:"num_trials"`
	Agent     struct {
		Implementation string `json:"implementation"`
		LLM            string `json:"llm"`
	} `json:"agent_info"`
	Environment struct {
		Domain string `json:"domain_name"`
	} `json:"environment_info"`
}

// A taskID is the id of a task: text or a number.
type taskID string

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (id *taskID) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(id))
	}
	var n json.Number
	err := json.Unmarshal(raw, &n)
	*id = taskID(n)
	return err
}

// results are the results of a file that was read once.
type results struct {
	doc     *source.Document
	info    info
	created source.Time
	table   source.Table[source.Span]
	found   int // simulations
}

func open(path string) (*source.Results, error) {
	if isTasks(source.ReadHead(path)) {
		return nil, &source.Error{
			Path: path, Err: errors.New("the file has tasks of tau2, and no results"),
			Hint: "run the tasks with tau2, which has their tools and simulates their users, and import its results",
		}
	}
	doc, err := source.ReadDocument(path)
	if err != nil {
		return nil, err
	}
	r := &results{doc: doc}
	top := doc.Members(doc.All())
	if err := r.readHead(top); err != nil {
		return nil, err
	}
	for i, at := range doc.Elements(top["tasks"]) {
		if err := r.addTask(at); err != nil {
			return nil, doc.Fail(at, fmt.Sprintf("tasks[%d]", i), err)
		}
	}
	for i, at := range doc.Elements(top["simulations"]) {
		if err := r.addSimulation(at); err != nil {
			return nil, doc.Fail(at, fmt.Sprintf("simulations[%d]", i), err)
		}
	}
	if err := r.table.Expect(int(r.info.NumTrials.Count())); err != nil {
		return nil, &source.Error{Path: r.doc.Path, Err: err}
	}
	return r.finish()
}

func (r *results) readHead(top map[string]source.Span) error {
	if at, ok := top["info"]; ok {
		if err := source.Decode(at.In(r.doc.Text), &r.info); err != nil {
			return r.doc.Fail(at, "info", err)
		}
	}
	if at, ok := top["timestamp"]; ok {
		return source.Decode(at.In(r.doc.Text), &r.created)
	}
	return nil
}

func (r *results) addTask(at source.Span) error {
	var task struct {
		ID taskID `json:"id"`
	}
	if err := source.Decode(at.In(r.doc.Text), &task); err != nil {
		return err
	}
	return r.table.Task(record.TaskRef{ID: string(task.ID)})
}

func (r *results) addSimulation(at source.Span) error {
	var s struct {
		TaskID taskID        `json:"task_id"`
		Trial  source.Number `json:"trial"` // from 0
	}
	if err := source.Decode(at.In(r.doc.Text), &s); err != nil {
		return err
	}
	r.found++
	num := 0
	if s.Trial.Known {
		num = int(s.Trial.Count()) + 1
	}
	return r.table.Add(record.TaskRef{ID: string(s.TaskID)}, num, at)
}

func (r *results) finish() (*source.Results, error) {
	rec := source.NewRun(r.doc.Path, name, strings.TrimSpace(name+" "+r.info.Environment.Domain), r.created.Time)
	rec.Config.Model, rec.Config.Agent = r.info.Agent.LLM, r.info.Agent.Implementation
	rec.Config.Trials = int(max(r.info.NumTrials.Count(), 1))
	var err error
	if rec.Tasks, err = r.table.Refs(); err == nil && r.found == 0 {
		err = errors.New("the file has no simulations")
	}
	if err != nil {
		return nil, &source.Error{Path: r.doc.Path, Err: err}
	}
	res := &source.Results{Run: rec, Sum: r.doc.Sum, Status: record.StatusCompleted, Read: r.read}
	want := 0
	for i := range rec.Tasks {
		want += rec.Tasks[i].Trials
	}
	if r.found < want {
		res.Status = record.StatusInterrupted
		res.Notes = append(res.Notes, fmt.Sprintf("the file has %d of %d simulations: the run did not end", r.found, want))
	}
	return res, nil
}

func (r *results) read(visit source.Visit) error {
	doc, err := r.doc.Reread()
	if err != nil {
		return err
	}
	return r.table.Read(visit, "the file has no such simulation", func(at source.Span) (*record.Trial, error) {
		var s simulation
		if err := source.Decode(at.In(doc.Text), &s); err != nil {
			return nil, doc.Fail(at, "", err)
		}
		return s.trial(), nil
	})
}
