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
	o      Options
	guides guides
}

// New returns an assistant.
func New(o Options) *Assistant { return &Assistant{o: o, guides: loadGuides()} }

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

// guides are the schemas of the files of a suite.
type guides struct{ suite, task, triggers, dataset *guide }

// loadGuides parses the schemas once. They are part of the program, and tests check that they
// are valid, so an invalid schema is simply left empty.
var loadGuides = sync.OnceValue(func() guides {
	g := guides{suite: guideOf(schemafiles.Suite()), task: guideOf(schemafiles.Task()), triggers: guideOf(schemafiles.TriggerTests())}
	g.dataset = &guide{root: &schema{Defs: g.suite.root.Defs}}
	if suite := g.suite.root.Defs["Suite"]; suite != nil {
		tasks := suite.Properties.get("tasks")
		g.dataset.root.AnyOf = []*schema{tasks, {Properties: properties{{"tasks", tasks}}}}
	}
	return g
})

func guideOf(data []byte) *guide {
	g := &guide{root: &schema{}}
	if err := json.Unmarshal(data, g.root); err != nil {
		return &guide{root: &schema{}}
	}
	return g
}

// A query is a document and what a question about it needs.
type query struct {
	*Assistant
	Document
	guide *guide
	tree  *tree
	// suite is never nil: if it could not be loaded, it contains only its paths.
	suite *eval.Suite
	// suiteTree is the tree of the suite's text: the document's tree, if it is the suite.
	suiteTree *tree
}

// ask prepares a question; nil if the document does not belong to a suite.
func (a *Assistant) ask(d Document) *query {
	q := &query{Assistant: a, Document: d, suite: d.Suite}
	switch {
	case d.Suite != nil && d.Suite.File == d.Path || d.Suite == nil && discover.IsSuite(d.Path):
		q.guide = a.guides.suite
	case eval.IsTriggerTests(d.Path):
		q.guide = a.guides.triggers
	case d.Suite != nil && d.Suite.TasksFrom != "" && d.Suite.Path(d.Suite.TasksFrom) == d.Path:
		q.guide = a.guides.dataset
	case d.Suite != nil && d.Suite.IsTaskFile(d.Path):
		q.guide = a.guides.task
	default:
		return nil
	}
	if q.suite == nil {
		q.suite = &eval.Suite{Places: reach.Places{File: d.Path, Dir: filepath.Dir(d.Path)}}
	}
	return q
}

// isSuite reports whether the document is the suite itself.
func (q *query) isSuite() bool { return q.guide == q.guides.suite }

func (q *query) options() eval.Options {
	return eval.Options{Vocabulary: q.o.Vocabulary, Overlay: q.Overlay}
}

// scanned returns the tree of the document's text.
func (q *query) scanned() *tree {
	if q.tree == nil {
		q.tree = scan(q.Text)
	}
	return q.tree
}

// ofSuite returns the tree of the suite's text; one without a root if it cannot be read.
func (q *query) ofSuite() *tree {
	if q.isSuite() {
		return q.scanned()
	}
	if q.suiteTree == nil {
		text, _ := eval.ReadText(q.suite.File, q.options())
		q.suiteTree = scan(text)
	}
	return q.suiteTree
}

// within moves an offset to the start of its character, or to the nearest end of the text.
func within(text string, offset int) int {
	offset = max(0, min(offset, len(text)))
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	return offset
}
