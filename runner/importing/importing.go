// Package importing reads results of other tools as runs. Call [Open] for a file, then [File.Read]
// for its trials, or [Save] to record it as a run. Its folders are the formats, and package source is
// the contract with them.
package importing

import (
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"waza/runner/importing/harbor"
	"waza/runner/importing/inspect"
	"waza/runner/importing/microsoft"
	"waza/runner/importing/promptfoo"
	"waza/runner/importing/source"
	"waza/runner/importing/swebench"
	"waza/runner/importing/tau2"
	"waza/runner/importing/vally"
	"waza/runner/record"
	"waza/runner/tally"
)

// formats lists the formats. The first that recognizes a file reads it. The last reads all other
// files.
var formats = []source.Format{
	inspect.Format, vally.Format, promptfoo.Format, swebench.Format, tau2.Format, harbor.Format, microsoft.Format,
}

// A File holds results that were read once and are valid. It holds no transcripts, and no open
// file.
type File struct {
	// Path is the path as given.
	Path string
	// Run is the request for the run, as recorded in the file. Its id starts with the time of
	// the run and ends with a hash of everything in the file, so the same results have the same
	// id.
	Run *record.Run
	// Status is the final status of the run.
	Status record.Status
	// Tasks holds the results of the tasks, in the order of the run; Summary sums them up.
	Tasks   []*record.Task
	Summary *record.Summary
	// Notes lists the omitted parts of the file, with reasons.
	Notes []string

	read func(source.Visit) error
}

// Open reads and checks a whole file. The error is a [*source.Error].
func Open(path string) (*File, error) {
	format := recognize(path)
	if format == nil {
		format = &formats[len(formats)-1]
	}
	res, err := format.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Run: res.Run, Status: res.Status, Notes: res.Notes, read: res.Read}
	if err := f.setID(res.Sum); err != nil {
		return nil, &source.Error{Path: path, Err: err}
	}
	totals := newTotals(f.Run)
	if err := f.Read(func(task int, t *record.Trial) error { totals.add(task, t); return nil }); err != nil {
		return nil, err
	}
	f.Tasks, f.Summary = totals.results(f.Run, res.DurationMS)
	return f, nil
}

// Recognizes reports whether a file looks like results of another tool. It returns false for a result
// that waza run --output wrote.
func Recognizes(path string) bool { return recognize(path) != nil }

func recognize(path string) *source.Format {
	head := source.ReadHead(path)
	for i := range formats {
		if formats[i].Recognizes(head) {
			return &formats[i]
		}
	}
	return nil
}

// Read visits the trials of the file in the order of the run's tasks, with the index of their
// task. visit owns the trial. An error of visit ends the reading and is returned unchanged.
func (f *File) Read(visit source.Visit) error { return f.read(visit) }

// idHash is the number of characters of the hash in an id.
const idHash = 10

// setID sets the id of the run, and its time if the file has none.
func (f *File) setID(sum []byte) error {
	rec := f.Run
	if rec.CreatedAt.IsZero() {
		rec.CreatedAt = time.Now().UTC()
		f.Notes = append(f.Notes, "the file has no timestamp: the run gets the present time")
	}
	if y := rec.CreatedAt.Year(); y < 2000 || y > 9999 {
		return fmt.Errorf("timestamp %s: expected a year from 2000 to 9999", rec.CreatedAt.Format(time.RFC3339))
	}
	code := strings.ToLower(base32.StdEncoding.EncodeToString(sum))
	rec.RunID = rec.CreatedAt.Format(record.IDTime) + "-" + code[:idHash]
	return nil
}

// totals sums up the trials of a file.
type totals struct {
	rec   *record.Run
	run   *tally.Draft
	tasks []tally.Task
}

func newTotals(rec *record.Run) *totals {
	t := &totals{rec: rec, run: tally.NewDraft(rec)}
	thresholds := rec.Criteria().Thresholds
	for i := range rec.Tasks {
		t.tasks = append(t.tasks, tally.NewTask(&rec.Tasks[i], thresholds[i]))
	}
	return t
}

func (t *totals) add(task int, res *record.Trial) {
	lean := *res
	lean.Output, lean.Prompt, lean.Transcript = "", "", nil
	t.run.AddTrial(task, &lean)
	t.tasks[task].Add(&lean)
}

func (t *totals) results(rec *record.Run, ms int64) ([]*record.Task, *record.Summary) {
	thresholds := rec.Criteria().Thresholds
	var list []*record.Task
	for i := range t.tasks {
		res := t.tasks[i].Result(thresholds[i])
		t.run.AddTask(i, res)
		list = append(list, res)
	}
	sum := t.run.Summary(rec.Metrics)
	sum.DurationMS = ms
	return list, sum
}
