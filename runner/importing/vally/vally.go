// Package vally reads results.jsonl of Vally. Stimuli become tasks.
package vally

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"waza/runner/importing/source"
	"waza/runner/record"
)

const name = "vally"

// The types of records.
const (
	typeTrial   = "trial-result"
	typeSummary = "run-summary"
)

// baseline is the variant of trials without the skills.
const baseline = "baseline"

// Format is the format of Vally's results.jsonl.
var Format = source.Format{
	Name: name,
	Recognizes: func(h *source.Head) bool {
		typ := h.Texts["type"]
		return typ == typeTrial || typ == typeSummary
	},
	Open: open,
}

// A lean holds the parts of a record that the first reading needs.
type lean struct {
	Type       string       `json:"type"`
	ItemID     string       `json:"itemId"`
	EvalName   string       `json:"evalName"`
	Stimulus   stimulus     `json:"stimulus"`
	Model      string       `json:"model"`
	Variant    string       `json:"variant"`
	Grade      *gradeResult `json:"gradeResult"`
	Passed     *bool        `json:"passed"` // of the summary
	Trajectory struct {
		Events []struct {
			Timestamp source.Time `json:"timestamp"`
		} `json:"events"`
	} `json:"trajectory"`
}

func (l *lean) stimulus() string { return cmp.Or(l.Stimulus.Name, l.ItemID) }

// A stimulus is the name of a stimulus, or all of it.
type stimulus struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (s *stimulus) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &s.Name)
	}
	type plain stimulus
	return source.Decode(raw, (*plain)(s))
}

// results are the records of a file that was read once.
type results struct {
	lines        *source.Lines
	table        source.Table[int]
	names        source.Names
	evals        source.Varying
	models       source.Varying
	variants     source.Varying
	baselines    int  // trials of the agent without skills, which are omitted
	fell         bool // a trial did not pass
	failed       bool // the summary says that the run failed
	created      source.Time
	ended        bool
	unknownTypes int
}

func open(path string) (*source.Results, error) {
	lines, err := source.ReadLines(path)
	if err != nil {
		return nil, err
	}
	r := &results{lines: lines}
	trials, err := r.find()
	if err != nil {
		return nil, err
	}
	for _, at := range trials {
		if err := r.add(at); err != nil {
			return nil, lines.Fail(at, err)
		}
	}
	return r.finish()
}

// find returns the lines of trials.
func (r *results) find() ([]int, error) {
	var trials []int
	for i := range r.lines.Len() {
		if len(r.lines.Line(i)) == 0 {
			continue
		}
		var l lean
		if err := source.Decode(r.lines.Line(i), &l); err != nil {
			return nil, r.lines.Fail(i, err)
		}
		switch l.Type {
		case typeTrial:
			if l.Variant == baseline {
				r.baselines++
				continue
			}
			r.variants.Add(l.Variant)
			r.fell = r.fell || l.Grade == nil || l.Grade.Passed == nil || !*l.Grade.Passed
			trials = append(trials, i)
			r.evals.Add(l.EvalName)
			r.models.Add(l.Model)
		case typeSummary:
			r.ended, r.failed = true, l.Passed != nil && !*l.Passed
		default:
			r.unknownTypes++
		}
		for _, e := range l.Trajectory.Events {
			if at := e.Timestamp; !at.IsZero() && (r.created.IsZero() || at.Before(r.created.Time)) {
				r.created = at
			}
		}
	}
	return trials, nil
}

func (r *results) add(at int) error {
	var l lean
	if err := source.Decode(r.lines.Line(at), &l); err != nil {
		return err
	}
	if l.stimulus() == "" {
		return errors.New("stimulus and itemId are missing")
	}
	key, err := json.Marshal([]string{l.EvalName, l.stimulus(), l.Model, l.Variant})
	if err != nil {
		return err
	}
	origin := r.evals.Suffix(l.EvalName) + r.models.Suffix(l.Model)
	if l.Variant != "" {
		origin += r.variants.Suffix(l.Variant)
	}
	ref := record.TaskRef{ID: r.names.Of(string(key), l.stimulus()+origin)}
	if r.models.Only() == "" && l.Model != "" {
		ref.Groups = []string{l.Model}
	}
	return r.table.Add(ref, 0, at)
}

func (r *results) finish() (*source.Results, error) {
	rec := source.NewRun(r.lines.Path, name, cmp.Or(r.evals.Only(), name), r.created.Time)
	rec.Config.Model = r.models.Only()
	var err error
	if rec.Tasks, err = r.table.Refs(); err == nil && len(rec.Tasks) == 0 {
		err = errors.New("the file has no trial-result")
	}
	if err != nil {
		return nil, &source.Error{Path: r.lines.Path, Err: err}
	}
	for i := range rec.Tasks {
		rec.Config.Trials = max(rec.Config.Trials, rec.Tasks[i].Trials)
	}
	res := &source.Results{Run: rec, Sum: r.lines.Sum, Status: record.StatusCompleted, Read: r.read}
	if !r.ended {
		res.Status = record.StatusInterrupted
		res.Notes = append(res.Notes, "the file has no run-summary: the run did not end")
	}
	if r.baselines > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("trials of the variant baseline are omitted: %d", r.baselines))
	}
	if r.failed && !r.fell {
		res.Notes = append(res.Notes, "the run-summary says that the run failed, although all its trials passed")
	}
	if r.unknownTypes > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("records of unknown types are omitted: %d", r.unknownTypes))
	}
	return res, nil
}

func (r *results) read(visit source.Visit) error {
	lines, err := r.lines.Reread()
	if err != nil {
		return err
	}
	return r.table.Read(visit, "the file has no such trial", func(at int) (*record.Trial, error) {
		var t trialResult
		if err := source.Decode(lines.Line(at), &t); err != nil {
			return nil, lines.Fail(at, err)
		}
		return t.trial(), nil
	})
}
