package swebench

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"waza/eval/text"
	"waza/runner/importing/source"
	"waza/runner/record"
)

// An outcome is the result of an instance.
type outcome struct {
	Resolved *bool            `json:"resolved"`
	Exists   *bool            `json:"patch_exists"`
	None     *bool            `json:"patch_is_None"`
	Applied  *bool            `json:"patch_successfully_applied"`
	Tests    map[string]tests `json:"tests_status"`

	// verdict is set for an outcome without a grade: error or skipped.
	verdict record.Verdict
	reason  string // why it has none, or was not resolved
}

// tests are the results of tests of one kind.
type tests struct {
	Success []string `json:"success"`
	Failure []string `json:"failure"`
}

// decisive are the kinds of tests that decide, in the order of the graders.
var decisive = []string{"FAIL_TO_PASS", "PASS_TO_PASS"}

func (o *outcome) trial() *record.Trial {
	t := &record.Trial{Untimed: true}
	switch {
	case o.verdict != "":
		t.Verdict, t.Error = o.verdict, o.reason
	case o.Resolved == nil:
		source.Fail(t, "the report does not say whether the instance is resolved")
	default:
		t.Graders = o.graders()
		source.Judge(t, "")
	}
	return t
}

// graders returns the verdict, which decides, and the tests, which only explain it: some repositories
// are graded on failures only.
func (o *outcome) graders() []record.Grade {
	list := []record.Grade{{
		Name: "resolved", Type: source.TypeImported, Score: source.Pass(*o.Resolved), Passed: *o.Resolved, Weight: 1, Feedback: o.feedback(),
	}}
	for _, kind := range decisive {
		t := o.Tests[kind]
		n := len(t.Success) + len(t.Failure)
		if n == 0 {
			continue
		}
		g := record.Grade{Name: kind, Type: source.TypeImported, Score: float64(len(t.Success)) / float64(n), Passed: len(t.Failure) == 0, Weight: 1, Optional: true}
		if !g.Passed {
			g.Feedback = text.Clip(fmt.Sprintf("%s failed: %s", text.Count(len(t.Failure), "test", "tests"), strings.Join(t.Failure, ", ")), 2000)
		}
		list = append(list, g)
	}
	return list
}

// feedback explains why the instance is not resolved.
func (o *outcome) feedback() string {
	is := func(b *bool, value bool) bool { return b != nil && *b == value }
	switch {
	case *o.Resolved:
		return ""
	case o.reason != "":
		return o.reason
	case is(o.Exists, false), is(o.None, true):
		return "there is no patch"
	case is(o.Applied, false):
		return "the patch does not apply"
	}
	return ""
}

// A summary is the report of a run.
type summary struct {
	Total       source.Number `json:"total_instances"`
	NSubmitted  source.Number `json:"submitted_instances"`
	NCompleted  source.Number `json:"completed_instances"`
	NEmpty      source.Number `json:"empty_patch_instances"`
	NResolved   source.Number `json:"resolved_instances"`
	NUnresolved source.Number `json:"unresolved_instances"`
	NErrors     source.Number `json:"error_instances"`
	Submitted   []string      `json:"submitted_ids"`
	Completed   []string      `json:"completed_ids"`
	Incomplete  []string      `json:"incomplete_ids"`
	Empty       []string      `json:"empty_patch_ids"`
	Resolved    []string      `json:"resolved_ids"`
	Unresolved  []string      `json:"unresolved_ids"`
	Errors      []string      `json:"error_ids"`
}

// check reports counts that contradict the lists: then nobody knows which of them is right.
func (s *summary) check() error {
	for _, list := range []struct {
		key   string
		ids   []string
		count source.Number
	}{
		{"submitted", s.Submitted, s.NSubmitted}, {"completed", s.Completed, s.NCompleted}, {"empty_patch", s.Empty, s.NEmpty},
		{"resolved", s.Resolved, s.NResolved}, {"unresolved", s.Unresolved, s.NUnresolved}, {"error", s.Errors, s.NErrors},
	} {
		if n := int64(len(list.ids)); list.ids != nil && list.count.Known && list.count.Count() != n {
			return fmt.Errorf("%s_instances is %d, but %s_ids has %d", list.key, list.count.Count(), list.key, n)
		}
	}
	resolved := map[string]bool{}
	for _, id := range s.Resolved {
		resolved[id] = true
	}
	for _, id := range s.Errors {
		if resolved[id] {
			return fmt.Errorf("the instance %q is both resolved and in error", id)
		}
	}
	return nil
}

// openSummary reads the summary of a run: MODEL.RUN.json.
func (r *results) openSummary() error {
	doc, err := source.ReadDocument(r.path)
	if err != nil {
		return err
	}
	r.sums = append(r.sums, doc.Sum)
	var s summary
	if err := source.Decode(doc.Text, &s); err != nil {
		return &source.Error{Path: r.path, Err: err}
	}
	if err := r.addSummary(&s); err != nil {
		return &source.Error{Path: r.path, Err: err}
	}
	base := strings.TrimSuffix(filepath.Base(r.path), ".json")
	if at := strings.LastIndexByte(base, '.'); at > 0 {
		r.setModel(base[:at])
		r.run.Imported.EvalID = base[at+1:]
	}
	return nil
}

// addSummary adds the instances. The first list that has an id counts, except that an instance cannot
// be both resolved and not.
func (r *results) addSummary(s *summary) error {
	if err := s.check(); err != nil {
		return err
	}
	yes, no := true, false
	seen := map[string]*bool{}
	for _, list := range []struct {
		ids []string
		outcome
	}{
		{s.Resolved, outcome{Resolved: &yes}},
		{s.Unresolved, outcome{Resolved: &no}},
		{s.Empty, outcome{Resolved: &no, reason: "the patch is empty"}},
		{s.Errors, outcome{verdict: record.Errored, reason: "the evaluation of the instance ended in an error"}},
		{s.Completed, outcome{verdict: record.Errored, reason: "the report does not say whether the instance is resolved"}},
		{s.Submitted, outcome{verdict: record.Errored, reason: "the instance was submitted but not evaluated"}},
		{s.Incomplete, outcome{verdict: record.Skipped, reason: "the instance was not submitted"}},
	} {
		for _, id := range list.ids {
			if was, ok := seen[id]; ok {
				if was != nil && list.Resolved != nil && *was != *list.Resolved {
					return fmt.Errorf("the instance %q is both resolved and not resolved", id)
				}
				continue
			}
			seen[id] = list.Resolved
			if err := r.table.Add(record.TaskRef{ID: id}, 1, list.outcome); err != nil {
				return err
			}
		}
	}
	if len(seen) == 0 && s.Total.Count() > 0 {
		return errors.New("the report has counts but no ids of instances")
	}
	return nil
}
