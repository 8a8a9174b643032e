package assist

import (
	"os"
	"path/filepath"
	"slices"

	"waza/eval/files"
)

// refers says what the value of a key is the name of. It is the word x-refers of
// the schema, which comes from a tag of the field.
type refers string

const (
	toTaskFiles refers = "task-files"          // patterns of task files, relative to the suite
	toDataset   refers = "dataset"             // a file, relative to the suite
	toFile      refers = "suite-file"          // a file, relative to the suite, its repository or the process
	toProgram   refers = "program"             // the same, or a program on PATH
	toDirectory refers = "suite-directory"     // a directory, relative to the suite
	toNeighbour refers = "task-file-neighbour" // a file, relative to the task file
	toFixture   refers = "fixture"             // a file, relative to the task's fixture directory
	toSnapshot  refers = "snapshot"            // a file, relative to the grader's context_dir, or as fixture or suite-file
	toSkill     refers = "skill"               // a skill, by name
	toGrader    refers = "grader"              // a grader of the suite, by name or type
	toNamesake  refers = "grader-name"         // the name of a grader; in a task perhaps that of one of the suite's
	toTaskID    refers = "task-id"             // the task's own id
	toAgent     refers = "agent"               // an agent, by name
)

// isFile reports whether what is referred to is one file or directory.
func (r refers) isFile() bool {
	switch r {
	case toDataset, toFile, toProgram, toDirectory, toNeighbour, toFixture, toSnapshot:
		return true
	}
	return false
}

// mayBeElse reports whether a value that names no file is no fault: it may be a
// text, or a program.
func (r refers) mayBeElse() bool { return r == toProgram }

// refersTo is what a scalar is the name of, "" if nothing.
func refersTo(views []view) refers {
	for _, v := range views {
		if v.refers != "" && !v.isObject() {
			return v.refers
		}
	}
	return ""
}

// bases are the directories that a path is relative to, the first that has it
// counting.
func (q *query) bases(n *node, to refers) []string {
	switch to {
	case toNeighbour:
		return []string{filepath.Dir(q.Path)}
	case toFixture:
		return []string{q.fixtures(n)}
	case toSnapshot:
		dirs := []string{q.fixtures(n), q.suite.Dir}
		if own := q.ownContext(n); own != "" {
			dirs = slices.Insert(dirs, 0, own)
		}
		return append(dirs, q.repository()...)
	case toFile, toProgram:
		return append([]string{q.suite.Dir}, q.repository()...)
	}
	return []string{q.suite.Dir}
}

// beside is where files that a task file names are looked for after all bases. What
// is there is not proposed, because most of it is other tasks.
func (q *query) beside(to refers) []string {
	switch to {
	case toFile, toProgram, toDirectory, toFixture, toSnapshot:
		if !q.isSuite() {
			return []string{filepath.Dir(q.Path)}
		}
	}
	return nil
}

func (q *query) repository() []string {
	if root := files.RepositoryRoot(q.suite.Dir); root != "" && root != q.suite.Dir {
		return []string{root}
	}
	return nil
}

// fixtures is the fixture directory of the task that a node stands in.
func (q *query) fixtures(n *node) string {
	for ; n != nil; n = n.parent {
		if dir := q.tree.value(n, "context_dir"); dir != nil && (n.parent == nil || n.item != nil) && q.tree.value(n, "type") == nil {
			return q.suite.FixtureDir(dir.text())
		}
	}
	return q.suite.FixtureDir("")
}

// ownContext is the context_dir of the grader whose snapshots a node lists.
func (q *query) ownContext(n *node) string {
	for ; n != nil; n = n.parent {
		if dir := q.tree.value(n, "context_dir"); dir != nil {
			return q.suite.Path(dir.text())
		}
		if q.tree.value(n, "type") != nil {
			return ""
		}
	}
	return ""
}

// file is what a scalar that refers to one file names. tried are the places it
// was looked for; path is "" when it is in none of them.
func (q *query) file(n *node, to refers) (path string, tried []string) {
	text := n.text()
	if text == "" || to == toFixture && q.hasContent(n) {
		return "", nil
	}
	for _, base := range append(q.bases(n, to), q.beside(to)...) {
		p := filepath.FromSlash(text)
		if !filepath.IsAbs(p) {
			p = filepath.Join(base, p)
		}
		if slices.Contains(tried, p) {
			continue
		}
		tried = append(tried, p)
		if q.exists(p) {
			return p, tried
		}
	}
	return "", tried
}

// hasContent reports whether the text of a file stands beside its path, so that
// it is no fixture.
func (q *query) hasContent(n *node) bool {
	return n.pair != nil && q.tree.value(n.parent, "content") != nil
}

func (q *query) exists(path string) bool {
	if _, unsaved := q.Overlay[path]; unsaved {
		return true
	}
	_, err := os.Stat(path)
	return err == nil
}

// graders are those of a map, each with the name that it goes by.
func (q *query) graders(t *tree, n *node) []namedGrader {
	var out []namedGrader
	for _, it := range t.value(n, "graders").values() {
		g := t.follow(it)
		if g == nil || g.kind != mapping {
			continue
		}
		one := namedGrader{node: g, kind: t.value(g, "type").text()}
		if one.name = t.value(g, "name").text(); one.name == "" {
			one.name = one.kind
		}
		if one.name != "" {
			out = append(out, one)
		}
	}
	return out
}

type namedGrader struct {
	node       *node
	name, kind string
}

// suiteGraders are those that the suite defines.
func (q *query) suiteGraders() []namedGrader {
	t := q.ofSuite()
	return q.graders(t, t.root)
}
