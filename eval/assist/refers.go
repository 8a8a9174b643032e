package assist

import (
	"os"
	"path/filepath"
	"slices"

	"waza/eval/files"
)

// refers is the type of thing that the value of a key names. It is the keyword x-refers of the
// schema, which comes from a tag of the field.
type refers string

const (
	toTaskFiles refers = "task-files"          // patterns of task files, relative to the suite
	toDataset   refers = "dataset"             // a file, relative to the suite
	toFile      refers = "suite-file"          // a file, relative to the suite, its repository or the current directory
	toProgram   refers = "program"             // the same, or a program on PATH
	toDirectory refers = "suite-directory"     // a directory, relative to the suite
	toNeighbour refers = "task-file-neighbour" // a file, relative to the task file
	toFixture   refers = "fixture"             // a file, relative to the task's fixture directory
	toSnapshot  refers = "snapshot"            // a file, relative to the grader's context_dir, else like fixture or suite-file
	toSkill     refers = "skill"               // a skill, by name
	toClient    refers = "client"              // a client that receives messages, by name
	toGrader    refers = "grader"              // a grader of the suite, by name or type
	toNamesake  refers = "grader-name"         // the name of a grader; in a task it can be the name of one of the suite's graders
	toTaskID    refers = "task-id"             // the task's own id
	toAgent     refers = "agent"               // an agent, by name
)

// isFile reports whether the value names one file or directory.
func (r refers) isFile() bool {
	switch r {
	case toDataset, toFile, toProgram, toDirectory, toNeighbour, toFixture, toSnapshot:
		return true
	}
	return false
}

// mayBeElse reports whether a value that names no file can be valid: as a text, or as a program.
func (r refers) mayBeElse() bool { return r == toProgram }

// refersTo returns what a scalar names, "" if nothing.
func refersTo(views []view) refers {
	for _, v := range views {
		if v.refers != "" && !v.isObject() {
			return v.refers
		}
	}
	return ""
}

// bases returns the directories that a path can be relative to. The first one that contains it
// counts.
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

// beside returns the directory to try after all bases, for files that a task file names. Its
// files are not proposed, because most of them are other tasks.
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

// fixtures returns the fixture directory of the task that contains a node.
func (q *query) fixtures(n *node) string {
	for ; n != nil; n = n.parent {
		if dir := q.tree.value(n, "context_dir"); dir != nil && (n.parent == nil || n.item != nil) && q.tree.value(n, "type") == nil {
			return q.suite.FixtureDir(dir.text())
		}
	}
	return q.suite.FixtureDir("")
}

// ownContext returns the context_dir of the grader whose snapshots include a node.
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

// file returns the file that a scalar names. tried are the paths that were tried; path is "" if
// none of them exists.
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

// hasContent reports whether the content of a file is beside its path, so that the path names no
// fixture.
func (q *query) hasContent(n *node) bool {
	return n.pair != nil && q.tree.value(n.parent, "content") != nil
}

// skillFile returns the file of a skill of the suite; "" if there is no such skill.
func (q *query) skillFile(name string) string {
	for _, s := range q.suite.Skills() {
		if slices.Contains(s.Names, name) {
			return filepath.Join(s.Dir, "SKILL.md")
		}
	}
	return ""
}

func (q *query) exists(path string) bool {
	if _, unsaved := q.Overlay[path]; unsaved {
		return true
	}
	_, err := os.Stat(path)
	return err == nil
}

// graders returns the graders of a map, each with its effective name.
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

// suiteGraders returns the graders that the suite defines.
func (q *query) suiteGraders() []namedGrader {
	t := q.ofSuite()
	return q.graders(t, t.root)
}
