// Package microsoft reads results.json of microsoft/waza, and waza's own report in that format.
package microsoft

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/runner/importing/source"
	"waza/runner/record"
)

// Format is the format of results.json.
var Format = source.Format{Name: "microsoft", Recognizes: recognizes, Open: open}

// A file is a results.json that was read once and is valid.
type file struct {
	path  string
	doc   *document
	notes []string
}

func open(path string) (*source.Results, error) {
	f := &file{path: path}
	sums := [3]hash.Hash{sha256.New(), sha256.New(), sha256.New()}
	err := f.walk(func(r *reader) {
		f.doc = r.doc
		r.hashes = &sums
	}, nil)
	if err != nil {
		return nil, err
	}
	res, err := f.results(sums)
	if err != nil {
		return nil, &source.Error{Path: path, Err: err}
	}
	return res, nil
}

func (f *file) read(visit source.Visit) error {
	return f.walk(func(r *reader) { r.known = f.doc }, visit)
}

// walk reads the document once.
func (f *file) walk(prepare func(*reader), visit source.Visit) error {
	in, _, err := source.OpenFile(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	r := newReader(io.LimitReader(in, source.MaxBytes), visit)
	prepare(r)
	err = r.read()
	var failed *visitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return failed.err
	}
	return f.place(in, r, err)
}

// place adds the place in the file to an error.
func (f *file) place(in *os.File, r *reader, err error) error {
	e := &source.Error{Path: f.path, Member: r.member(), Err: plain(err)}
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
	if _, serr := in.Seek(0, io.SeekStart); serr == nil {
		e.Line = lineAt(in, offset)
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

// results converts the document.
func (f *file) results(sums [3]hash.Hash) (*source.Results, error) {
	d := f.doc
	rec := &record.Run{
		Suite:    record.SuiteRef{Name: d.EvalName, Skill: d.Skill},
		Imported: &record.Imported{File: filepath.Base(f.path), EvalID: d.EvalID, SchemaVersion: d.SchemaVersion},
	}
	rec.Suite.Name = cmp.Or(rec.Suite.Name, d.Skill)
	rec.Config.Config = eval.Config{
		Executor: d.Config.EngineType, Model: d.Config.ModelID, JudgeModel: d.Config.JudgeModel,
		TimeoutSeconds: d.Config.TimeoutSec,
	}
	rec.Config.Trials, rec.Config.ActualWorkers = max(1, int(d.Config.RunsPerTest)), 1
	rec.Config.Agent, _ = d.Metadata.text("agent")
	status := record.StatusCompleted
	if s, ok := d.Metadata.text("run_status"); ok && record.Status(s).Known() && record.Status(s) != record.StatusRunning {
		status = record.Status(s)
	}
	d.refs(rec, f)
	for _, name := range sortedNames(d.Metrics) {
		m := d.Metrics[name]
		rec.Metrics = append(rec.Metrics, record.MetricRef{Name: name, Weight: m.Weight, Threshold: m.Threshold})
	}
	rec.CreatedAt = d.Timestamp.UTC()
	sum := sha256.New()
	for _, s := range sums {
		sum.Write(s.Sum(nil))
	}
	if err := json.NewEncoder(sum).Encode([]any{d.EvalID, d.Timestamp, rec.Suite, rec.Config, rec.Tasks, rec.Metrics, status}); err != nil {
		return nil, err
	}
	return &source.Results{
		Run: rec, Sum: sum.Sum(nil), Status: status, DurationMS: int64(d.Summary.DurationMS), Notes: f.notes, Read: f.read,
	}, nil
}

// recognizes reports whether a file looks like results.json of microsoft/waza or another file
// that it writes. It returns false for a result that waza run --output wrote.
func recognizes(head *source.Head) bool {
	for _, name := range head.Names[:min(len(head.Names), 16)] {
		switch name {
		case "schemaVersion", "eval_id", "eval_name", "timestamp", "task_id":
			return true
		case "runId", "damage", "tasks":
			return false
		}
	}
	return false
}
