// Package promptfoo reads results that promptfoo eval -o FILE.json wrote. Tests become tasks.
package promptfoo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"waza/runner/importing/source"
	"waza/runner/record"
)

const name = "promptfoo"

// Format is the format of promptfoo's results.
var Format = source.Format{
	Name: name,
	Recognizes: func(h *source.Head) bool {
		return h.Has("evalId", "results") || h.Has("results", "config", "shareableUrl")
	},
	Open: open,
}

// A lean holds the parts of a result that the first reading needs.
type lean struct {
	Description string          `json:"description"` // of older versions
	Vars        json.RawMessage `json:"vars"`
	TestCase    struct {
		Description string          `json:"description"`
		Vars        json.RawMessage `json:"vars"`
		Assert      json.RawMessage `json:"assert"`
		Threshold   json.RawMessage `json:"threshold"`
	} `json:"testCase"`
	Prompt   prompt   `json:"prompt"`
	Provider provider `json:"provider"`
}

func (l *lean) description() string { return cmp.Or(l.TestCase.Description, l.Description) }

// asserts returns the assertions of the test; nil for an empty list.
func (l *lean) asserts() json.RawMessage {
	if raw := l.TestCase.Assert; string(raw) != "[]" {
		return raw
	}
	return nil
}

type prompt struct {
	Raw   string `json:"raw"`
	Label string `json:"label"`
}

// prompt returns the name of the prompt.
func (l *lean) prompt() string { return cmp.Or(l.Prompt.Label, l.Prompt.Raw) }

// A provider is the id of a provider, or an object with it.
type provider struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (p *provider) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &p.ID)
	}
	type plain provider
	return source.Decode(raw, (*plain)(p))
}

func (p provider) name() string { return cmp.Or(p.Label, p.ID) }

// results are the results of a file that was read once.
type results struct {
	doc       *source.Document
	id        string
	created   source.Time
	list      []source.Span
	table     source.Table[source.Span]
	names     source.Names
	tests     map[string]int // numbers of tests without a description, by everything that makes them differ
	prompts   source.Varying
	providers source.Varying
}

func open(path string) (*source.Results, error) {
	doc, err := source.ReadDocument(path)
	if err != nil {
		return nil, err
	}
	r := &results{doc: doc, tests: map[string]int{}}
	if err := r.find(); err != nil {
		return nil, err
	}
	for i, at := range r.list {
		var l lean
		if err := source.Decode(at.In(doc.Text), &l); err != nil {
			return nil, r.fail(i, err)
		}
		r.prompts.Add(l.prompt())
		r.providers.Add(l.Provider.name())
	}
	for i, at := range r.list {
		if err := r.add(at); err != nil {
			return nil, r.fail(i, err)
		}
	}
	return r.finish()
}

func (r *results) fail(i int, err error) error {
	return r.doc.Fail(r.list[i], fmt.Sprintf("results.results[%d]", i), err)
}

// find finds the results: they are in results.results.
func (r *results) find() error {
	top := r.doc.Members(r.doc.All())
	inner := r.doc.Members(top["results"])
	at, ok := inner["results"]
	if r.list = r.doc.Elements(at); !ok || len(r.list) == 0 {
		return &source.Error{Path: r.doc.Path, Member: "results.results", Err: errors.New("the file has no results")}
	}
	for _, member := range []struct {
		at source.Span
		v  any
	}{{top["evalId"], &r.id}, {inner["timestamp"], &r.created}} {
		if member.at.End == 0 {
			continue
		}
		if err := source.Decode(member.at.In(r.doc.Text), member.v); err != nil {
			return r.doc.Fail(member.at, "", err)
		}
	}
	return nil
}

func (r *results) add(at source.Span) error {
	var l lean
	if err := source.Decode(at.In(r.doc.Text), &l); err != nil {
		return err
	}
	vars := l.TestCase.Vars
	if len(vars) == 0 {
		vars = l.Vars
	}
	test, err := json.Marshal([]any{l.description(), vars, l.asserts(), l.TestCase.Threshold})
	if err != nil {
		return err
	}
	wanted := l.description()
	if wanted == "" {
		if r.tests[string(test)] == 0 {
			r.tests[string(test)] = len(r.tests) + 1
		}
		wanted = fmt.Sprintf("test %d", r.tests[string(test)])
	}
	wanted += r.prompts.Suffix(l.prompt()) + r.providers.Suffix(l.Provider.name())
	ref := record.TaskRef{ID: r.names.Of(string(test)+"\n"+l.prompt()+"\n"+l.Provider.name(), wanted)}
	if r.providers.Only() == "" && l.Provider.name() != "" {
		ref.Groups = []string{l.Provider.name()}
	}
	return r.table.Add(ref, 0, at)
}

func (r *results) finish() (*source.Results, error) {
	rec := source.NewRun(r.doc.Path, name, name, r.created.Time)
	rec.Config.Model, rec.Imported.EvalID = r.providers.Only(), r.id
	var err error
	if rec.Tasks, err = r.table.Refs(); err != nil {
		return nil, &source.Error{Path: r.doc.Path, Err: err}
	}
	for i := range rec.Tasks {
		rec.Config.Trials = max(rec.Config.Trials, rec.Tasks[i].Trials)
	}
	return &source.Results{Run: rec, Sum: r.doc.Sum, Status: record.StatusCompleted, Read: r.read}, nil
}

func (r *results) read(visit source.Visit) error {
	doc, err := r.doc.Reread()
	if err != nil {
		return err
	}
	return r.table.Read(visit, "the file has no such result", func(at source.Span) (*record.Trial, error) {
		var res result
		if err := source.Decode(at.In(doc.Text), &res); err != nil {
			return nil, doc.Fail(at, "", err)
		}
		return res.trial(), nil
	})
}
