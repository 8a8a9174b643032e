// Package harbor reads results of Harbor: the result.json of a trial, folders of those, and trajectories
// in the Agent Trajectory Interchange Format (ATIF).
package harbor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/runner/importing/source"
	"waza/runner/record"
)

const (
	name       = "harbor"
	resultName = "result.json"
)

// Format is the format of Harbor's results.
var Format = source.Format{
	Name: name,
	Recognizes: func(h *source.Head) bool {
		if h.Dir {
			return slices.ContainsFunc(source.Below(h.Path, resultName), func(path string) bool { return isResult(source.ReadHead(path)) })
		}
		return isResult(h) || isTrajectory(h)
	},
	Open: open,
}

func isResult(h *source.Head) bool { return h.Has("task_name", "trial_name") }

func isTrajectory(h *source.Head) bool {
	return strings.HasPrefix(h.Texts["schema_version"], "ATIF-")
}

// A place is a file with a trial.
type place struct {
	path       string
	sum        []byte
	trajectory bool // it has only a trajectory
	beside     *beside
	lost       bool // the folder at path has no result
}

// beside is the trajectory beside a result.
type beside struct {
	path string
	sum  []byte
}

// results are the trials of files that were read once.
type results struct {
	run     *record.Run
	table   source.Table[place]
	sums    [][]byte
	created source.Time
	agents  source.Varying
	models  source.Varying
	notes   []string
	lost    bool // a trial has no result
}

func open(path string) (*source.Results, error) {
	h := source.ReadHead(path)
	r := &results{run: source.NewRun(path, name, name, source.Time{}.Time)}
	paths := []string{path}
	if h.Dir {
		paths = source.Below(path, resultName)
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, &source.Error{Path: path, Err: err}
		}
		r.run.Suite.Name, r.run.Imported.File = filepath.Base(abs), filepath.Base(abs)
	}
	for _, p := range paths {
		if err := r.add(p, isTrajectory(h)); err != nil {
			return nil, err
		}
	}
	if h.Dir {
		if err := r.addLost(path, paths); err != nil {
			return nil, err
		}
	}
	return r.finish(path)
}

// addLost adds the trials whose folders have no result. The folder of a trial is TASK__ID.
func (r *results) addLost(path string, found []string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return &source.Error{Path: path, Err: err}
	}
	for _, e := range entries {
		dir := filepath.Join(path, e.Name())
		end := strings.LastIndex(e.Name(), "__")
		if !e.IsDir() || end < 1 || slices.Contains(found, filepath.Join(dir, resultName)) {
			continue
		}
		r.lost = true
		r.sums = append(r.sums, []byte(e.Name()))
		if err := r.put(dir, e.Name()[:end], place{path: dir, lost: true}); err != nil {
			return err
		}
	}
	return nil
}

// besideOf returns the trajectory that the agent of a trial left, if there is one. A broken one is
// noted: the grade counts without it.
func (r *results) besideOf(result string) *beside {
	path := filepath.Join(filepath.Dir(result), "agent", "trajectory.json")
	if _, err := os.Stat(path); err != nil || !isTrajectory(source.ReadHead(path)) {
		return nil
	}
	doc, err := source.ReadDocument(path)
	var t atif
	if err == nil {
		err = source.Decode(doc.Text, &t)
	}
	trial := filepath.Base(filepath.Dir(result))
	if err != nil {
		r.notes = append(r.notes, fmt.Sprintf("the trajectory of %s is omitted: %v", trial, err))
		return nil
	}
	for _, note := range t.omitted() {
		r.notes = append(r.notes, trial+": "+note)
	}
	r.sums = append(r.sums, doc.Sum)
	return &beside{path, doc.Sum}
}

// add adds the trial of a file.
func (r *results) add(path string, trajectory bool) error {
	doc, err := source.ReadDocument(path)
	if err != nil {
		return err
	}
	r.sums = append(r.sums, doc.Sum)
	at := place{path: path, sum: doc.Sum, trajectory: trajectory}
	if trajectory {
		var t atif
		if err := source.Decode(doc.Text, &t); err != nil {
			return &source.Error{Path: path, Err: err}
		}
		r.agents.Add(t.Agent.Name)
		for _, model := range t.models() {
			r.models.Add(model)
		}
		r.notes = append(r.notes, t.omitted()...)
		r.learn(t.start())
		return r.put(path, cmp.Or(t.SessionID, t.ID, "trajectory"), at)
	}
	var res trialResult
	if err := source.Decode(doc.Text, &res); err != nil {
		return &source.Error{Path: path, Err: err}
	}
	r.agents.Add(res.Agent.Name)
	r.models.Add(res.Agent.Model.Name)
	r.learn(res.StartedAt)
	at.beside = r.besideOf(path)
	return r.put(path, res.TaskName, at)
}

func (r *results) put(path, task string, at place) error {
	if err := r.table.Add(record.TaskRef{ID: task}, 0, at); err != nil {
		return &source.Error{Path: path, Err: err}
	}
	return nil
}

// learn keeps the earliest time.
func (r *results) learn(at source.Time) {
	if !at.IsZero() && (r.created.IsZero() || at.Before(r.created.Time)) {
		r.created = at
	}
}

func (r *results) finish(path string) (*source.Results, error) {
	rec := r.run
	rec.CreatedAt = r.created.Time
	rec.Config.Agent, rec.Config.Model = r.agents.Only(), r.models.Only()
	var err error
	if rec.Tasks, err = r.table.Refs(); err == nil && len(rec.Tasks) == 0 {
		err = errors.New("the folder has no result.json of a trial")
	}
	if err != nil {
		return nil, &source.Error{Path: path, Err: err}
	}
	for i := range rec.Tasks {
		rec.Config.Trials = max(rec.Config.Trials, rec.Tasks[i].Trials)
	}
	status := record.StatusCompleted
	if r.lost {
		status = record.StatusInterrupted
	}
	return &source.Results{Run: rec, Sum: source.Sum(r.sums...), Status: status, Notes: r.notes, Read: r.read}, nil
}

func (r *results) read(visit source.Visit) error {
	return r.table.Read(visit, "there is no such trial", func(at place) (*record.Trial, error) {
		if at.lost {
			t := &record.Trial{Untimed: true}
			source.Fail(t, "the folder of the trial has no result.json")
			return t, nil
		}
		doc, err := source.ReadDocument(at.path)
		switch {
		case err != nil:
			return nil, err
		case !bytes.Equal(doc.Sum, at.sum):
			return nil, &source.Error{Path: at.path, Err: source.ErrChanged}
		case at.trajectory:
			return trajectoryTrial(doc)
		}
		var res trialResult
		if err := source.Decode(doc.Text, &res); err != nil {
			return nil, &source.Error{Path: at.path, Err: err}
		}
		t := res.trial()
		return t, at.beside.addTo(t)
	})
}

// trajectoryTrial returns the trial of a trajectory. It has no score.
func trajectoryTrial(doc *source.Document) (*record.Trial, error) {
	var a atif
	if err := source.Decode(doc.Text, &a); err != nil {
		return nil, &source.Error{Path: doc.Path, Err: err}
	}
	t := &record.Trial{Untimed: true}
	a.apply(t)
	source.Judge(t, "a trajectory has no score")
	return t, nil
}

// addTo adds the trajectory to a trial, if there is one.
func (b *beside) addTo(t *record.Trial) error {
	if b == nil {
		return nil
	}
	doc, err := source.ReadDocument(b.path)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(doc.Sum, b.sum):
		return &source.Error{Path: b.path, Err: source.ErrChanged}
	}
	var a atif
	if err := source.Decode(doc.Text, &a); err != nil {
		return &source.Error{Path: b.path, Err: err}
	}
	a.apply(t)
	return nil
}
