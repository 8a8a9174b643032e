// Package assist answers what editors ask about the text of a suite while it is
// written: what may stand here, what does this mean, where is that. Make an
// [Assistant] with [New] once, and ask it about a [Document] as often as keys are
// struck.
//
// All that it knows comes from elsewhere: keys, values and their meaning from the
// JSON Schemas of package eval, graders and executors from the vocabulary, files
// from the disk. What a value refers to, the schema says by the word x-refers; see
// [refers].
//
// Texts are often broken while they are written, so they are scanned with much
// tolerance (scan.go); what is wrong with them is for eval.Load to say. Nothing is
// kept between questions but the schemas. Positions are byte offsets.
package assist

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"waza/eval"
	"waza/eval/discover"
)

// Options say what an assistant knows. The zero value knows no grader and no
// executor but by name.
type Options struct {
	// Vocabulary describes the graders and executors. Nil means that only their
	// names are known, from the schema.
	Vocabulary *eval.Vocabulary
}

// Assistant answers questions about documents. It is safe for concurrent use.
type Assistant struct {
	o      Options
	guides guides
}

// New returns an assistant.
func New(o Options) *Assistant { return &Assistant{o: o, guides: loadGuides()} }

// Document is a text in an editor.
type Document struct {
	// Path is absolute. What sort of file it is follows from it and Suite.
	Path string
	// Text as it stands in the editor: UTF-8.
	Text string
	// Suite is the one that the document belongs to, or is, as it was last
	// loaded. Nil means that none could be: a file that is called as suites are
	// gets help all the same, a task file does not.
	Suite *eval.Suite
	// Overlay holds unsaved files, by absolute path; nil for none.
	Overlay map[string][]byte
}

// guides are the schemas of the files of a suite.
type guides struct{ suite, task, triggers, dataset *guide }

// loadGuides parses the schemas once. They are part of the program, and its tests
// parse them, so what does not parse is left empty.
var loadGuides = sync.OnceValue(func() guides {
	g := guides{suite: guideOf(eval.SuiteSchema()), task: guideOf(eval.TaskSchema()), triggers: guideOf(eval.TriggerTestsSchema())}
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

// query is a document that a question is about.
type query struct {
	*Assistant
	Document
	guide *guide
	tree  *tree
	// suite is never nil: where none could be loaded it has its paths only.
	suite *eval.Suite
	// suiteTree is the text of the suite: the document's tree, if it is one.
	suiteTree *tree
}

// ask prepares a question; nil when the document is none of a suite's.
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
		q.suite = &eval.Suite{File: d.Path, Dir: filepath.Dir(d.Path)}
	}
	return q
}

// isSuite reports whether the document is the suite itself.
func (q *query) isSuite() bool { return q.guide == q.guides.suite }

func (q *query) options() eval.Options {
	return eval.Options{Vocabulary: q.o.Vocabulary, Overlay: q.Overlay}
}

// scanned is the text's tree.
func (q *query) scanned() *tree {
	if q.tree == nil {
		q.tree = scan(q.Text)
	}
	return q.tree
}

// ofSuite is the tree of the suite's text; one without a root if it cannot be read.
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

// within moves an offset to the begin of the character that it is in, or to the
// nearest end of the text.
func within(text string, offset int) int {
	offset = max(0, min(offset, len(text)))
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	return offset
}
