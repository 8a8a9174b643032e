// Package importing reads results.json of microsoft/waza, and waza's own report in that format,
// as runs. Call [Open] for a file, then [File.Read] for its trials, or [Save] to record it as a
// run.
package importing

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/files"
	"waza/runner/record"
	"waza/runner/tally"
)

// The limits of a file. Larger files are rejected.
const (
	// MaxBytes is the size of the largest file.
	MaxBytes = 256 << 20
	maxTasks = 100_000
	maxRuns  = 1_000_000
	// maxName is the most bytes of a name or id.
	maxName = 4 << 10
)

// A File is a results.json that was read once and is valid. It holds no transcripts, and no open
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

	doc *document
}

// An Error means that a file cannot be read, and states where.
type Error struct {
	Path string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Member is the place in the document: tasks[2].runs[0].status. It can be empty.
	Member string
	Err    error
	// Hint suggests what to do; it can be empty.
	Hint string
}

func (e *Error) Error() string { return Place(e.Path, e.Line) + ": " + e.Inside().Error() }

// Place formats a line of a file; 0 means the file as a whole.
func Place(path string, line int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}

// Inside returns the error without the name of the file: tasks[2].runs[0]: status "x": expected
// …
func (e *Error) Inside() error {
	if e.Member == "" {
		return e.Err
	}
	return fmt.Errorf("%s: %w", e.Member, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Open reads and checks a whole file. The error is an [*Error].
func Open(path string) (*File, error) {
	f := &File{Path: path}
	sums := [3]hash.Hash{sha256.New(), sha256.New(), sha256.New()}
	err := f.walk(func(r *reader) error {
		f.doc = r.doc
		r.hashes = &sums
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := f.makeRun(sums); err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	totals := newTotals(f.Run)
	if err := f.Read(func(task int, t *record.Trial) error { totals.add(task, t); return nil }); err != nil {
		return nil, err
	}
	f.Tasks, f.Summary = totals.results(f.Run, int64(f.doc.Summary.DurationMS))
	return f, nil
}

// Read visits the trials of the file in the order of the run's tasks, with the index of their
// task. visit owns the trial. An error of visit ends the reading and is returned unchanged.
func (f *File) Read(visit func(task int, t *record.Trial) error) error {
	return f.walk(func(r *reader) error {
		r.known = f.doc
		return nil
	}, visit)
}

// walk reads the document once.
func (f *File) walk(prepare func(*reader) error, visit func(task int, t *record.Trial) error) error {
	file, err := os.Open(f.Path)
	if err != nil {
		return &Error{Path: f.Path, Err: files.WithoutPath(err)}
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return &Error{Path: f.Path, Err: err}
	case !info.Mode().IsRegular():
		return &Error{Path: f.Path, Err: errors.New("not a regular file")}
	case info.Size() > MaxBytes:
		return &Error{Path: f.Path, Err: fmt.Errorf("has %d bytes, the limit is %d", info.Size(), MaxBytes)}
	}
	r := newReader(io.LimitReader(file, MaxBytes), visit)
	if err := prepare(r); err != nil {
		return err
	}
	err = r.read()
	var failed *visitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return failed.err
	}
	return f.place(file, r, err)
}

// place adds the place in the file to an error.
func (f *File) place(file *os.File, r *reader, err error) error {
	e := &Error{Path: f.Path, Member: r.member(), Err: plain(err)}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		e.Member, e.Hint = "", foreign.hint
		return e
	}
	offset := int64(0)
	var syntax *json.SyntaxError
	switch n := len(r.offsets); {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case n > 0:
		offset = r.offsets[n-1]
	default:
		return e
	}
	if _, serr := file.Seek(0, io.SeekStart); serr == nil {
		e.Line = lineAt(file, offset)
	}
	return e
}

// lineAt returns the number of the line that contains the first value after the given number of
// bytes. It skips separators.
func lineAt(r io.Reader, bytes int64) int {
	line, buf := 1, bufio.NewReader(r)
	for at := int64(0); ; at++ {
		c, err := buf.ReadByte()
		switch {
		case err != nil:
			return line
		case c == '\n':
			line++
		case at >= bytes && !strings.ContainsRune(" \t\r,:", rune(c)):
			return line
		}
	}
}

// idHash is the number of characters of the hash in an id.
const idHash = 10

// makeRun converts the document to the record of a run.
func (f *File) makeRun(sums [3]hash.Hash) error {
	d := f.doc
	rec := &record.Run{
		Suite:    record.SuiteRef{Name: d.EvalName, Skill: d.Skill},
		Imported: &record.Imported{File: filepath.Base(f.Path), EvalID: d.EvalID, SchemaVersion: d.SchemaVersion},
	}
	rec.Suite.Name = cmp.Or(rec.Suite.Name, d.Skill)
	rec.Config.Config = eval.Config{
		Executor: d.Config.EngineType, Model: d.Config.ModelID, JudgeModel: d.Config.JudgeModel,
		TimeoutSeconds: d.Config.TimeoutSec,
	}
	rec.Config.Trials, rec.Config.ActualWorkers = max(1, int(d.Config.RunsPerTest)), 1
	rec.Config.Agent, _ = d.Metadata.text("agent")
	f.Status = record.StatusCompleted
	if s, ok := d.Metadata.text("run_status"); ok && record.Status(s).Known() && record.Status(s) != record.StatusRunning {
		f.Status = record.Status(s)
	}
	d.refs(rec, f)
	for _, name := range sortedNames(d.Metrics) {
		m := d.Metrics[name]
		rec.Metrics = append(rec.Metrics, record.MetricRef{Name: name, Weight: m.Weight, Threshold: m.Threshold})
	}
	rec.CreatedAt = d.Timestamp.UTC()
	if d.Timestamp.IsZero() {
		rec.CreatedAt = time.Now().UTC()
		f.Notes = append(f.Notes, "the file has no timestamp: the run gets the present time")
	}
	if y := rec.CreatedAt.Year(); y < 2000 || y > 9999 {
		return fmt.Errorf("timestamp %s: expected a year from 2000 to 9999", rec.CreatedAt.Format(time.RFC3339))
	}
	sum := sha256.New()
	for _, s := range sums {
		sum.Write(s.Sum(nil))
	}
	if err := json.NewEncoder(sum).Encode([]any{d.EvalID, d.Timestamp, rec.Suite, rec.Config, rec.Tasks, rec.Metrics, f.Status}); err != nil {
		return err
	}
	code := strings.ToLower(base32.StdEncoding.EncodeToString(sum.Sum(nil)))
	rec.RunID = rec.CreatedAt.Format(record.IDTime) + "-" + code[:idHash]
	f.Run = rec
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

// Recognizes reports whether a file looks like results.json of microsoft/waza or another file
// that it writes. It returns false for a result that waza run --output wrote. It reads only the
// names of the first members.
func Recognizes(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	dec := json.NewDecoder(io.LimitReader(file, MaxBytes))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return false
	}
	for range 16 {
		name, err := dec.Token()
		if err != nil {
			return false
		}
		switch name {
		case "schemaVersion", "eval_id", "eval_name", "timestamp", "task_id":
			return true
		case "runId", "damage", "tasks":
			return false
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return false
		}
	}
	return false
}
