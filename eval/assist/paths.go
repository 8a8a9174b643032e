package assist

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/discover"
	"waza/eval/files"
)

// maxListed limits the entries of a directory that are read for proposals.
const maxListed = 2000

// files proposes the files and directories that a value can name, below the part of the path
// that is already typed.
func (c *completer) files(to refers) {
	dir, _ := path.Split(filepath.ToSlash(c.typed))
	for _, base := range c.bases(c.node, to) {
		for _, e := range c.list(filepath.Join(base, filepath.FromSlash(dir))) {
			switch {
			case e.dir:
				c.text(Item{Label: dir + e.name + "/", Sort: Folder})
				c.incomplete = true
			case filepath.Join(base, dir, e.name) == c.suite.File:
			case to != toDirectory && (to != toDataset || isDataset(e.name)):
				c.text(Item{Label: dir + e.name, Sort: File})
			}
		}
	}
}

func isDataset(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".tsv", ".jsonl", ".ndjson", ".yaml", ".yml":
		return true
	}
	return false
}

// taskFiles proposes patterns of task files: for each directory with YAML files the pattern that
// matches all of them.
func (c *completer) taskFiles() {
	dir, _ := path.Split(filepath.ToSlash(c.typed))
	entries := c.list(c.suite.Path(dir))
	for _, e := range entries {
		if e.dir && c.holdsYAML(c.suite.Path(dir+e.name)) {
			c.text(Item{Label: dir + e.name + "/*.yaml", Sort: File, Detail: "pattern"})
		}
	}
	for _, e := range entries {
		full := c.suite.Path(dir + e.name)
		switch {
		case e.dir:
			c.text(Item{Label: dir + e.name + "/", Sort: Folder})
			c.incomplete = true
		case isYAML(e.name) && full != c.suite.File && !eval.IsTriggerTests(e.name) && !discover.IsSuite(e.name):
			c.text(Item{Label: dir + e.name, Sort: File})
		}
	}
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

func (c *completer) holdsYAML(dir string) bool {
	return slices.ContainsFunc(c.list(dir), func(e entry) bool { return !e.dir && strings.HasSuffix(e.name, ".yaml") })
}

type entry struct {
	name string
	dir  bool
}

// list returns the entries of a directory by name, except hidden and installed ones. It lists
// nothing outside the suite's repository.
func (q *query) list(dir string) []entry {
	if !q.reachable(dir) {
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
func (q *query) reachable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && files.Within(q.suite.Root(), dir)
}

// shown returns a path for display: relative to the suite, if it is below it.
func (q *query) shown(file string) string {
	if rel, err := filepath.Rel(q.suite.Dir, file); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}
