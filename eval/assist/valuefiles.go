package assist

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/discover"
)

// files proposes the files and directories that a value can name, below the part of the path
// that is already typed.
func (c valueProposals) files(to refers) {
	dir, _ := path.Split(filepath.ToSlash(c.typed))
	for _, base := range c.paths.bases(c.node, to) {
		for _, e := range c.paths.list(filepath.Join(base, filepath.FromSlash(dir))) {
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
func (c valueProposals) taskFiles() {
	dir, _ := path.Split(filepath.ToSlash(c.typed))
	entries := c.paths.list(c.suite.Path(dir))
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

func (c valueProposals) holdsYAML(dir string) bool {
	return slices.ContainsFunc(c.paths.list(dir), func(e entry) bool { return !e.dir && strings.HasSuffix(e.name, ".yaml") })
}
