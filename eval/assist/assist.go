// Package assist answers editors' questions about the text of a suite while it is written: what
// is allowed here, what does this mean, where is it defined. Make an [Assistant] with [New]
// once, and ask it about a [Document] at every key stroke.
//
// Its knowledge comes from elsewhere: keys, values and their meaning from the JSON Schemas of
// package eval, graders and executors from the vocabulary, files from the disk. The keyword
// x-refers of the schema declares what a value refers to; see [refers].
//
// Texts are often broken while they are written, so a tolerant scanner (scan.go) reads them;
// eval.Load reports their faults. An assistant keeps nothing between questions except the
// schemas. Positions are byte offsets.
package assist

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"waza/eval"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/schemafiles"
)

// Options configure an assistant. With the zero value it has only the names of graders and
// executors.
type Options struct {
	// Vocabulary describes the graders and executors. Nil means that only their names are known,
	// from the schema.
	Vocabulary *eval.Vocabulary
}

// An Assistant answers questions about documents. It is safe for concurrent use.
type Assistant struct {
	vocabulary *eval.Vocabulary
	schemas    schemas
}

// New returns an assistant.
func New(o Options) *Assistant { return &Assistant{vocabulary: o.Vocabulary, schemas: loadSchemas()} }

// A Document is a text in an editor.
type Document struct {
	// Path is absolute. Path and Suite determine the type of the file.
	Path string
	// Text is the current text in the editor: UTF-8.
	Text string
	// Suite is the suite of the document, as it was last loaded. Nil means that it could not be
	// loaded. Then a file with a name of suites still gets help, but a task file does not.
	Suite *eval.Suite
	// Overlay holds unsaved files, by absolute path; nil for none.
	Overlay map[string][]byte
}

// schemas are those of the files of a suite.
type schemas struct{ suite, task, triggers, dataset *schema }

// loadSchemas parses the schemas once. They are part of the program, and tests check that they
// are valid, so an invalid schema is simply left empty.
var loadSchemas = sync.OnceValue(func() schemas {
	s := schemas{
		suite: parseSchema(schemafiles.Suite()), task: parseSchema(schemafiles.Task()), triggers: parseSchema(schemafiles.TriggerTests()),
	}
	s.dataset = &schema{Defs: s.suite.Defs}
	if suite := s.suite.Defs["Suite"]; suite != nil {
		tasks := suite.Properties.get("tasks")
		s.dataset.AnyOf = []*schema{tasks, {Properties: properties{{"tasks", tasks}}}}
	}
	return s
})

func parseSchema(data []byte) *schema {
	s := &schema{}
	if err := json.Unmarshal(data, s); err != nil {
		return &schema{}
	}
	return s
}

// of returns the schema of a document; nil if it does not belong to a suite.
func (s schemas) of(d Document) *schema {
	switch {
	case d.Suite != nil && d.Suite.File == d.Path || d.Suite == nil && discover.IsSuite(d.Path):
		return s.suite
	case eval.IsTriggerTests(d.Path):
		return s.triggers
	case d.Suite != nil && d.Suite.TasksFrom != "" && d.Suite.Path(d.Suite.TasksFrom) == d.Path:
		return s.dataset
	case d.Suite != nil && d.Suite.IsTaskFile(d.Path):
		return s.task
	}
	return nil
}

// A query is what all questions about a document need. An [explainer], a [finder], an [outline]
// and a [completer] answer one question each.
type query struct {
	Document
	isSuite bool // the document is the suite itself
	isTask  bool // the document is a task file
	tree    shaped
	suite   *suiteText
	paths   paths
	words   words
}

// ask prepares a question; nil if the document does not belong to a suite.
func (a *Assistant) ask(d Document) *query {
	q, _ := a.askAt(d, noMark)
	return q
}

// askAt is like ask, with a mark in the document at an offset. It also returns the node that
// contains the mark; nil if the mark is in a comment.
func (a *Assistant) askAt(d Document, offset int) (*query, *node) {
	schema := a.schemas.of(d)
	if schema == nil {
		return nil, nil
	}
	loaded := d.Suite
	if loaded == nil {
		loaded = &eval.Suite{Places: reach.Places{File: d.Path, Dir: filepath.Dir(d.Path)}}
	}
	t, marked := scan(d.Text, offset)
	q := &query{Document: d, isSuite: schema == a.schemas.suite, isTask: schema == a.schemas.task, tree: shaped{t, schema}}
	q.suite = &suiteText{Suite: loaded, options: eval.Options{Vocabulary: a.vocabulary, View: files.View{Overlay: d.Overlay}}}
	if q.isSuite {
		q.suite.tree = t
	}
	q.paths = paths{document: d.Path, isSuite: q.isSuite, overlay: d.Overlay, tree: t, suite: loaded}
	q.words = words{vocabulary: a.vocabulary, tree: q.tree}
	return q, marked
}

// within moves an offset to the start of its character, or to the nearest end of the text.
func within(text string, offset int) int {
	offset = max(0, min(offset, len(text)))
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	return offset
}
