// Package dialect is the contract of suites in the formats of other tools. A [Dialect] recognizes
// its files and translates each into the nodes of an eval.yaml, with the places of the original.
// Package eval decodes and checks these nodes like those of any suite, so only the list of suites
// knows which format a suite has.
//
// Each dialect is a package below this one. Package builtin lists them.
package dialect

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// A Dialect is the suite format of another tool. It is immutable, and its functions are safe for
// concurrent use.
type Dialect struct {
	// Name identifies the format in lists and JSON, such as "skill-evals".
	Name string
	// Named reports whether a search reads a file because of its path, which has slashes. Content and
	// Placed decide whether the file is a suite.
	Named func(path string) bool
	// ProjectFile is the name of a file in which a project of the tool chooses names for its suites. Patterns
	// returns patterns of them for a directory, which is absolute, from the nearest such file in it or
	// above it. Like Named, they only let a search read a file.
	ProjectFile string
	Patterns    func(dir string, v files.View) []string
	// Recognizes reports whether a file has the content of this format. The node is the root of a
	// file of any name, and no alias.
	Recognizes func(root *yaml.Node) bool
	// Placed reports whether a file that is recognized is a suite at its path, which is absolute. It can
	// look at the files around it. Nil means at every path.
	Placed func(path string, root *yaml.Node) bool
	// Home returns the directory that contains all files of a suite in no repository, from the absolute
	// path of its file. Nil means the directory of the file.
	Home func(path string) string
	// Refuses returns the reason why a file that is Named and has another content is no suite;
	// empty if such files are common and need no message. Nil returns "".
	Refuses func(root *yaml.Node) string
	// OnlyNamed means that suites of this format do what others do, in several ways. Programs that run
	// all suites of a directory leave them out.
	OnlyNamed bool
	// Translate fills in the suite and the tasks of a translation. It reports every key
	// that it cannot translate: an error if a verdict would change, else a warning.
	Translate func(*Translation)
	// Target is the value of `waza convert --to` that people usually write for this format.
	Target string
	// FileName is the usual name of a file that Write writes; empty for a folder of several files.
	FileName string
	// Write returns a suite in this format, and adds the parts that the format cannot say to the losses of
	// the document. With a FileName, the suite is one file, whose path does not matter. Else the paths are
	// relative to the folder File of the document. Nil if waza only reads the format.
	Write func(*Document) ([]File, error)
}

// A Translation is a suite in the format of another tool on its way to an eval.yaml. One goroutine
// uses it.
type Translation struct {
	// Findings receives the faults of the original.
	*decode.Findings
	// Source is the file that was recognized. Its root is not nil.
	Source *decode.Source
	// Files are the files that the suite may read.
	Files *Files
	// HeadOnly means that the caller needs no tasks, graders and trigger tests.
	HeadOnly bool
	// Params are values that the caller gives to parameters of the suite, by their names. See [Translation.Param].
	Params *Params
	// Chosen are the parts of a suite that the caller chose in place of those of the file.
	Chosen Chosen

	// Suite is the result: the root of an eval.yaml. Its nodes have the places of the nodes of
	// Source that they come from. Paths in it are relative to the directory of Source.
	Suite *yaml.Node
	// Tasks are the tasks that come from other files, after those of Suite.
	Tasks []Task
	// Results are those of calls of programs, by key. Calls are the calls without a result.
	Results map[string]Result
	Calls   []Call
	asked   map[string]bool // the keys of Calls
}

// Params are values of parameters. The zero value, and nil, have none.
type Params struct {
	Values map[string]string
	// Partial means that faults kept the dialect from reading a part of the suite, which can have more parameters.
	Partial bool
	used    map[string]bool
}

// IsParam reports whether a text can be the name of a parameter.
func IsParam(name string) bool { return paramName().MatchString(name) }

var paramName = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Get returns the value of a parameter, and whether it has one. It remembers that the suite has the parameter.
func (p *Params) Get(name string) (value string, ok bool) {
	if p == nil {
		return "", false
	}
	if value, ok = p.Values[name]; ok {
		if p.used == nil {
			p.used = map[string]bool{}
		}
		p.used[name] = true
	}
	return value, ok
}

// Unused returns the names of the values that the suite did not use, in the order of the alphabet; nil if it was
// read only in part.
func (p *Params) Unused() (names []string) {
	if p.Partial {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Values)) {
		if !p.used[name] {
			names = append(names, name)
		}
	}
	return names
}

// Chosen lists parts of a suite that its caller chose. Such a part of the file has no effect, so that waza need not be
// able to use it.
type Chosen struct {
	Agent, Executor bool // of trials
	Judge           bool // a model or an agent for graders that name no judge
}

// A Task is a task of a translated suite that another file declares.
type Task struct {
	Source *decode.Source // the file; its root can be anything
	Node   *yaml.Node     // the task, with places of Source
}

// HomeOf returns the result of Home, which can be nil; "" means the directory of the file.
func (d *Dialect) HomeOf(path string) string {
	if d.Home == nil {
		return ""
	}
	return d.Home(path)
}
