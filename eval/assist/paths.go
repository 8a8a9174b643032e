package assist

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/files"
)

// paths finds the files that the values of a document name, on the disk or unsaved in the editor,
// in the directories that they can be relative to.
type paths struct {
	document string
	isSuite  bool // the document is the suite itself
	overlay  map[string][]byte
	tree     *tree
	suite    *eval.Suite
}

// bases returns the directories that a path can be relative to. The first one that contains it
// counts.
func (p paths) bases(n *node, to refers) []string {
	switch to {
	case toNeighbour:
		return []string{filepath.Dir(p.document)}
	case toFixture:
		return []string{p.fixtures(n)}
	case toSnapshot:
		dirs := []string{p.fixtures(n), p.suite.Dir}
		if own := p.ownContext(n); own != "" {
			dirs = slices.Insert(dirs, 0, own)
		}
		return append(dirs, p.repository()...)
	case toFile, toProgram:
		return append([]string{p.suite.Dir}, p.repository()...)
	}
	return []string{p.suite.Dir}
}

// beside returns the directory to try after all bases, for files that a task file names. Its
// files are not proposed, because most of them are other tasks.
func (p paths) beside(to refers) []string {
	switch to {
	case toFile, toProgram, toDirectory, toFixture, toSnapshot:
		if !p.isSuite {
			return []string{filepath.Dir(p.document)}
		}
	}
	return nil
}

func (p paths) repository() []string {
	if root := files.RepositoryRoot(p.suite.Dir); root != "" && root != p.suite.Dir {
		return []string{root}
	}
	return nil
}

// fixtures returns the fixture directory of the task that contains a node.
func (p paths) fixtures(n *node) string {
	for ; n != nil; n = n.parent {
		if dir := p.tree.value(n, "context_dir"); dir != nil && (n.parent == nil || n.item != nil) && p.tree.value(n, "type") == nil {
			return p.suite.FixtureDir(dir.text())
		}
	}
	return p.suite.FixtureDir("")
}

// ownContext returns the context_dir of the grader whose snapshots include a node.
func (p paths) ownContext(n *node) string {
	for ; n != nil; n = n.parent {
		if dir := p.tree.value(n, "context_dir"); dir != nil {
			return p.suite.Path(dir.text())
		}
		if p.tree.value(n, "type") != nil {
			return ""
		}
	}
	return ""
}

// file returns the file that a scalar names. tried are the paths that were tried; path is "" if
// none of them exists.
func (p paths) file(n *node, to refers) (path string, tried []string) {
	text := n.text()
	if text == "" || to == toFixture && p.hasContent(n) {
		return "", nil
	}
	for _, base := range append(p.bases(n, to), p.beside(to)...) {
		full := filepath.FromSlash(text)
		if !filepath.IsAbs(full) {
			full = filepath.Join(base, full)
		}
		if slices.Contains(tried, full) {
			continue
		}
		tried = append(tried, full)
		if p.exists(full) {
			return full, tried
		}
	}
	return "", tried
}

// hasContent reports whether the content of a file is beside its path, so that the path names no
// fixture.
func (p paths) hasContent(n *node) bool {
	return n.pair != nil && p.tree.value(n.parent, "content") != nil
}

func (p paths) exists(path string) bool {
	if _, unsaved := p.overlay[path]; unsaved {
		return true
	}
	_, err := os.Stat(path)
	return err == nil
}

// opened returns the file itself, or the files to open for a directory: its SKILL.md, or the
// files in it.
func (p paths) opened(path string) []Target {
	entries := p.list(path)
	if len(entries) == 0 {
		return []Target{{Path: path}}
	}
	var out []Target
	for _, e := range entries {
		skill := filepath.Join(path, e.name, "SKILL.md")
		switch {
		case e.name == "SKILL.md":
			return []Target{{Path: filepath.Join(path, e.name)}}
		case !e.dir:
			out = append(out, Target{Path: filepath.Join(path, e.name)})
		case p.exists(skill):
			out = append(out, Target{Path: skill})
		}
	}
	return out
}

// maxListed limits the entries of a directory that are read for proposals.
const maxListed = 2000

type entry struct {
	name string
	dir  bool
}

// list returns the entries of a directory by name, except hidden and installed ones. It lists
// nothing outside the suite's repository.
func (p paths) list(dir string) []entry {
	if !p.reachable(dir) {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	found, _ := f.ReadDir(maxListed) // a directory that cannot be listed gives no proposals
	var out []entry
	for _, e := range found {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || !e.IsDir() && !e.Type().IsRegular() {
			continue
		}
		out = append(out, entry{e.Name(), e.IsDir()})
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return out
}

// reachable reports whether a directory is in the suite's repository, or without one, below the
// suite's own directory. A link that leads elsewhere does not count.
func (p paths) reachable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && files.Within(p.suite.Root(), dir)
}

// shown returns a path for display: relative to the suite, if it is below it.
func (p paths) shown(file string) string {
	if rel, err := filepath.Rel(p.suite.Dir, file); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}
