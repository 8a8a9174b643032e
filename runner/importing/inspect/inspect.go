// Package inspect reads logs of Inspect: .eval archives and .json files. Samples become tasks, epochs
// trials, and scorers graders.
package inspect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/importing/source"
	"waza/runner/record"
)

const name = "inspect"

// Format is the format of Inspect's logs.
var Format = source.Format{
	Name:       name,
	Recognizes: func(h *source.Head) bool { return h.Zip || h.Has("version", "status", "eval") },
	Open:       open,
}

// A container is a log in one of its two forms.
type container interface {
	// header returns the text of the log without samples. finished is false if the run was
	// still writing the log.
	header() (text []byte, finished bool, err error)
	// samples returns the number of samples; sample returns the text of one of them.
	samples() int
	sample(i int) ([]byte, error)
	// fail returns an error about a sample.
	fail(i int, err error) error
	sum() []byte
}

func openContainer(path string) (container, error) {
	if source.ReadHead(path).Zip {
		return openArchive(path)
	}
	return openJSON(path)
}

// A log is a log that was read once.
type log struct {
	path   string
	sum    []byte
	head   header
	table  source.Table[int]
	scales scales
	// ids are the ids of tasks by the JSON of the sample's id: a log can have 1 and "1".
	ids   map[string]string
	taken map[string]bool
}

func open(path string) (*source.Results, error) {
	in, err := openContainer(path)
	if err != nil {
		return nil, err
	}
	l := &log{path: path, sum: in.sum(), scales: scales{}, ids: map[string]string{}, taken: map[string]bool{}}
	finished, err := l.readHeader(in)
	if err != nil {
		return nil, err
	}
	if err := l.readSamples(in); err != nil {
		return nil, err
	}
	return l.results(finished)
}

func (l *log) readHeader(in container) (finished bool, err error) {
	text, finished, err := in.header()
	if err != nil {
		return false, err
	}
	if err := source.Decode(text, &l.head); err != nil {
		return false, &source.Error{Path: l.path, Err: err}
	}
	return finished, nil
}

// readSamples adds the samples to the table, then those that the log should have.
func (l *log) readSamples(in container) error {
	for i := range in.samples() {
		text, err := in.sample(i)
		if err != nil {
			return err
		}
		var s lean
		if err := source.Decode(text, &s); err != nil {
			return in.fail(i, err)
		}
		if err := l.add(i, &s); err != nil {
			return in.fail(i, err)
		}
	}
	for _, id := range l.head.Eval.Dataset.SampleIDs {
		if err := l.table.Task(record.TaskRef{ID: l.taskID(id)}); err != nil {
			return &source.Error{Path: l.path, Member: "eval.dataset.sample_ids", Err: err}
		}
	}
	if err := l.table.Expect(l.head.epochs()); err != nil {
		return &source.Error{Path: l.path, Err: err}
	}
	return nil
}

func (l *log) add(i int, s *lean) error {
	if s.ID.text == "" {
		return errors.New("the id of the sample is missing")
	}
	if err := l.table.Add(record.TaskRef{ID: l.taskID(s.ID)}, int(s.Epoch.Count()), i); err != nil {
		return err
	}
	return l.scales.learn(s.Scores)
}

// taskID returns the id of the task for a sample.
func (l *log) taskID(id sampleID) string {
	if known, ok := l.ids[id.json]; ok {
		return known
	}
	name := id.text
	for n := 2; l.taken[name]; n++ {
		name = id.text + "#" + strconv.Itoa(n)
	}
	l.ids[id.json], l.taken[name] = name, true
	return name
}

func (l *log) results(finished bool) (*source.Results, error) {
	e := &l.head.Eval
	rec := source.NewRun(l.path, name, cmp.Or(e.Task, e.Dataset.Name, name), e.Created.Time)
	if rec.CreatedAt.IsZero() {
		rec.CreatedAt = l.head.Stats.StartedAt.Time
	}
	rec.Imported.EvalID = e.RunID
	rec.Config.Model, rec.Config.Trials = e.Model, l.head.epochs()
	if len(e.Task) > source.MaxName || len(e.Model) > source.MaxName || len(e.RunID) > source.MaxName {
		return nil, &source.Error{Path: l.path, Member: "eval", Err: fmt.Errorf("a name has more than %d bytes", source.MaxName)}
	}
	var err error
	if rec.Tasks, err = l.table.Refs(); err != nil {
		return nil, &source.Error{Path: l.path, Err: err}
	}
	if len(rec.Tasks) == 0 {
		return nil, &source.Error{Path: l.path, Err: errors.New("the log has no samples")}
	}
	res := &source.Results{
		Run: rec, Sum: l.sum, Status: l.head.status(finished), Notes: l.scales.notes(), Read: l.read,
		DurationMS: l.head.Stats.CompletedAt.Since(l.head.Stats.StartedAt).Milliseconds(),
	}
	if res.Status != record.StatusCompleted {
		note := fmt.Sprintf("the log is of a run that did not end normally (status %s)", l.head.state(finished))
		if reason := text.Clip(strings.Join(strings.Fields(string(l.head.Error.Message)), " "), 500); reason != "" {
			note += ": " + reason
		}
		res.Notes = append(res.Notes, note)
	}
	return res, nil
}

// read visits the trials.
func (l *log) read(visit source.Visit) error {
	in, err := openContainer(l.path)
	if err != nil {
		return err
	}
	if !bytes.Equal(in.sum(), l.sum) {
		return &source.Error{Path: l.path, Err: source.ErrChanged}
	}
	return l.table.Read(visit, "the log has no such sample", func(i int) (*record.Trial, error) {
		text, err := in.sample(i)
		if err != nil {
			return nil, err
		}
		var s sample
		if err := source.Decode(text, &s); err != nil {
			return nil, in.fail(i, err)
		}
		t, err := s.trial(l)
		if err != nil {
			return nil, in.fail(i, err)
		}
		return t, nil
	})
}
