// Package swebench reads reports of SWE-bench: the summary of a run, the report.json of an instance, and
// folders of those. Instances become tasks.
package swebench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waza/runner/importing/source"
	"waza/runner/record"
)

const (
	name       = "swebench"
	reportName = "report.json"
)

// Format is the format of SWE-bench's reports.
var Format = source.Format{
	Name: name,
	Recognizes: func(h *source.Head) bool {
		return isSummary(h) || isInstance(h) || withoutResults(h) != "" || h.Dir && len(source.Below(h.Path, reportName)) > 0
	},
	Open: open,
}

func isSummary(h *source.Head) bool {
	return h.Has("resolved_ids") || h.Has("total_instances", "resolved_instances")
}

func isInstance(h *source.Head) bool {
	for _, inner := range h.Inner {
		if inner == "patch_successfully_applied" || inner == "patch_exists" {
			return true
		}
	}
	return false
}

// withoutResults returns what a file of SWE-bench contains, if that is no report.
func withoutResults(h *source.Head) string {
	entry := h
	if h.First != nil {
		entry = h.First
	}
	switch {
	case entry.Has("instance_id", "model_patch"), slices.Contains(h.Inner, "model_patch"):
		return "predictions"
	case entry.Has("instance_id", "FAIL_TO_PASS"):
		return "instances"
	default:
		return ""
	}
}

// results are the outcomes of instances in memory: they are small.
type results struct {
	path  string
	run   *record.Run
	table source.Table[outcome]
	sums  [][]byte
}

func open(path string) (*source.Results, error) {
	r := &results{path: path, run: source.NewRun(path, name, "swe-bench", time.Time{})}
	h := source.ReadHead(path)
	var err error
	switch {
	case h.Dir:
		err = r.openFolder()
	case isSummary(h):
		err = r.openSummary()
	case !isInstance(h) && withoutResults(h) != "":
		return nil, &source.Error{
			Path: path, Err: fmt.Errorf("the file has %s of SWE-bench, and no results", withoutResults(h)),
			Hint: "evaluate predictions with SWE-bench, and import its report",
		}
	default:
		_, err = r.openInstance(path)
	}
	if err != nil {
		return nil, err
	}
	if r.run.Tasks, err = r.table.Refs(); err == nil && len(r.run.Tasks) == 0 {
		err = errors.New("the report has no instances")
	}
	if err != nil {
		return nil, &source.Error{Path: path, Err: err}
	}
	return &source.Results{Run: r.run, Sum: source.Sum(r.sums...), Status: record.StatusCompleted, Read: r.read}, nil
}

// openInstance reads the report of an instance, or of several, and returns their number.
func (r *results) openInstance(path string) (n int, err error) {
	doc, err := source.ReadDocument(path)
	if err != nil {
		return 0, err
	}
	r.sums = append(r.sums, doc.Sum)
	for id, at := range doc.Sorted(doc.All()) {
		var o outcome
		if err := source.Decode(at.In(doc.Text), &o); err != nil {
			return 0, doc.Fail(at, id, err)
		}
		if err := r.table.Add(record.TaskRef{ID: id}, 1, o); err != nil {
			return 0, doc.Fail(at, id, err)
		}
		n++
	}
	return n, nil
}

// openFolder reads a folder logs/run_evaluation/RUN/MODEL with a folder for each instance.
func (r *results) openFolder() error {
	abs, err := filepath.Abs(r.path)
	if err != nil {
		return &source.Error{Path: r.path, Err: err}
	}
	r.setModel(filepath.Base(abs))
	r.run.Imported.File, r.run.Imported.EvalID = filepath.Base(abs), filepath.Base(filepath.Dir(abs))
	found := map[string]bool{}
	for _, path := range source.Below(r.path, reportName) {
		n, err := r.openInstance(path)
		if err != nil {
			return err
		}
		found[filepath.Base(filepath.Dir(path))] = n > 0
	}
	return r.addUnreported(found)
}

// addUnreported adds the instances whose folder has no report of an instance.
func (r *results) addUnreported(found map[string]bool) error {
	entries, err := os.ReadDir(r.path)
	if err != nil {
		return &source.Error{Path: r.path, Err: err}
	}
	for _, e := range entries {
		if !e.IsDir() || found[e.Name()] {
			continue
		}
		r.sums = append(r.sums, []byte(e.Name()))
		err := r.table.Add(record.TaskRef{ID: e.Name()}, 1, outcome{verdict: record.Errored, reason: "the instance has no report.json, or an empty one"})
		if err != nil {
			return &source.Error{Path: r.path, Err: err}
		}
	}
	return nil
}

// setModel sets the model from the name of a file or folder, where / is replaced.
func (r *results) setModel(name string) {
	r.run.Config.Model = strings.ReplaceAll(name, "__", "/")
}

func (r *results) read(visit source.Visit) error {
	return r.table.Read(visit, "the report has no such instance", func(o outcome) (*record.Trial, error) { return o.trial(), nil })
}
