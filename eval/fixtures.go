package eval

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/template"
	"waza/eval/text"
)

// Files that tasks put into workspaces besides inputs.files, and into prompts.

const (
	// maxContextFiles limits the files of the folder that inputs.context.fixture names.
	maxContextFiles = 10_000
	// maxFixtureText limits a fixture whose text is part of a prompt, maxFixtureTexts all of
	// these in a suite, in bytes.
	maxFixtureText  = 1 << 20
	maxFixtureTexts = 64 << 20
)

// fixtureCheck finds the files of a task that are copied into its workspace or into its prompts,
// and limits their size.
type fixtureCheck struct {
	*taskCheck
	list  *[]InputFile // the list that is being filled
	bytes int64        // of the fixtures so far
}

// addContext puts the file that inputs.context.fixture names into the workspace, or all
// files of the folder of that name. The path is relative to the suite. Files that the task lists
// itself have priority.
func (c *fixtureCheck) addContext() {
	l, at := c.loader, c.inputPath("context", "fixture")
	name, ok := c.task.Inputs.Context["fixture"].(string)
	if !ok || strings.TrimSpace(name) == "" {
		return
	}
	if _, others := l.executors().remote(); !others {
		c.reportf(decode.Warning, decode.CodeNoEffect, at,
			"executor %s sends no files to its agents; only graders see these", l.suite.Config.Executor)
	}
	switch from, info := c.stat("context.fixture", name, at); {
	case info == nil:
	case !info.IsDir():
		c.addFile(filepath.Dir(from), filepath.Base(from), filepath.Base(from), at)
	default:
		c.addFolder(from, "", at)
	}
}

// stat finds the file or folder, relative to the suite, that a key names for the workspace. It reports
// one that cannot be used, and returns nil.
func (c *fixtureCheck) stat(key, name string, at decode.Path) (from string, info fs.FileInfo) {
	l := c.loader
	from = filepath.Join(l.suite.Dir, filepath.FromSlash(name))
	if filepath.IsAbs(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) || !reach.Within(l.suite.Root(), from) {
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "%s must be relative to the suite and inside %s", key, l.suite.RootWord())
		return "", nil
	}
	l.dependsOn(from)
	info, err := os.Stat(from)
	if err != nil {
		c.reportf(decode.Error, decode.CodeMissingFixture, at,
			"no such fixture: %s (%s is a file or folder, relative to the suite, that waza copies into the workspace)",
			l.display(from), key)
		return "", nil
	}
	return from, info
}

// addFolder adds all files of a folder, below a path of the workspace.
func (c *fixtureCheck) addFolder(dir, below string, at decode.Path) {
	n := 0
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			c.loader.dependsOn(file)
			return nil
		}
		if n++; n > maxContextFiles {
			c.reportf(decode.Error, decode.CodeTooLarge, at, "fixture %s contains more than %d files", c.loader.display(dir), maxContextFiles)
			return filepath.SkipAll
		}
		rel, err := filepath.Rel(dir, file)
		if err == nil {
			c.addFile(dir, filepath.ToSlash(rel), path.Join(below, filepath.ToSlash(rel)), at)
		}
		return err
	})
	if err != nil {
		c.reportf(decode.Error, decode.CodeMissingFixture, at, "%s: %s", c.loader.display(dir), files.Reason(err))
	}
}

// addFile adds the file rel of a folder at a path of the workspace, unless the task has another file
// there.
func (c *fixtureCheck) addFile(dir, rel, target string, at decode.Path) {
	if slices.ContainsFunc(*c.list, func(f InputFile) bool { return path.Clean(f.Path) == target }) {
		return
	}
	file := filepath.Join(dir, filepath.FromSlash(rel))
	info, err := os.Stat(file)
	if c.usable(dir, file, rel, info, err, at) {
		*c.list = append(*c.list, InputFile{Path: target, Source: file})
	}
}

// setTexts sets the variables {{fixture:FILE}} of a prompt; at is the prompt's place.
func (c *fixtureCheck) setTexts(prompt string, at decode.Path) {
	if !strings.Contains(prompt, template.Fixture) {
		return
	}
	for expr := range template.Variables(prompt) {
		name, ok := strings.CutPrefix(expr, template.Fixture)
		if _, known := c.task.Vars[expr]; !ok || known {
			continue
		}
		vars := maps.Clone(c.task.Vars)
		if vars == nil {
			vars = map[string]string{}
		}
		vars[expr] = c.loadText(strings.TrimSpace(name), at)
		c.task.Vars = vars
	}
}

// loadText returns the text of a fixture, and reports a fixture that cannot be used.
func (c *fixtureCheck) loadText(name string, at decode.Path) string {
	l := c.loader
	if name == "" || !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) {
		c.reportf(decode.Error, decode.CodeEscapingPath, at,
			"{{%s%s}}: the path must be relative and inside the fixture directory", template.Fixture,
			text.Clip(name, 80))
		return ""
	}
	file := c.find(name, at)
	if file == "" {
		return ""
	}
	if known, ok := l.fixtures[file]; ok {
		return known
	}
	content, node := "", decode.Place(c.node, at...)
	data, err := l.readFile(file, maxFixtureText)
	if err == nil {
		content, _, err = decode.PlainText(data, false)
	}
	if err != nil {
		l.reportUnreadable(file, c.src, node, err)
	} else if l.fixtureBytes += len(content); l.fixtureBytes > maxFixtureTexts {
		c.reportf(decode.Error, decode.CodeTooLarge, at,
			"the fixtures in prompts of the suite, up to %s, have more than %s", l.display(file),
			files.Size(maxFixtureTexts))
		content = ""
	}
	if l.fixtures == nil {
		l.fixtures = map[string]string{}
	}
	l.fixtures[file] = content
	return content
}

// usable reports whether a file of dir can be put into a workspace, and reports why not. rel is
// the suite's name for it.
func (c *fixtureCheck) usable(dir, file, rel string, info fs.FileInfo, err error, at decode.Path) bool {
	l := c.loader
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.reportf(decode.Error, decode.CodeMissingFixture, at, "no such fixture: %s%s", l.display(file), c.hint(rel))
	case err != nil:
		c.reportf(decode.Error, decode.CodeMissingFixture, at, "%s: %s", l.display(file), files.Reason(err))
	case !files.Within(dir, file):
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "fixture %s is a link that leads out of %s", l.display(file), l.display(dir))
	case l.suite.Allows(file) != nil:
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "fixture %s is %s", l.display(file), l.suite.Allows(file))
	case !info.Mode().IsRegular():
		c.reportf(decode.Error, decode.CodeMissingFixture, at, "fixture %s is %s, not a file", l.display(file), files.TypeOf(info.Mode()))
	case info.Size() > MaxFixtureBytes:
		c.reportf(decode.Error, decode.CodeTooLarge, at, "fixture %s has %d bytes; the limit is %s", l.display(file),
			info.Size(), files.Size(MaxFixtureBytes))
	case c.bytes+info.Size() > maxTaskFixtures:
		c.reportf(decode.Error, decode.CodeTooLarge, at, "the fixtures up to %s of task %q have more than %s",
			l.display(file), text.Clip(c.task.ID, 80), files.Size(maxTaskFixtures))
	default:
		c.bytes += info.Size()
		return true
	}
	return false
}

// check checks the files for the workspace and finds their fixtures.
func (c *fixtureCheck) check() {
	if c.task.ContextDir != "" && c.loader.options.ContextDir == "" {
		c.checkContextDir()
	}
	for i := range c.task.Inputs.Checkpoints {
		c.checkList(&c.task.Inputs.Checkpoints[i].Files, "checkpoints", i, "files")
	}
	c.checkList(&c.task.Inputs.Files, "files")
	c.addContext()
}

// checkList checks a list of files, at a place of the inputs.
func (c *fixtureCheck) checkList(list *[]InputFile, place ...any) {
	targets := map[string]bool{}
	listed := *list
	*list, c.list = nil, list
	for i, f := range listed {
		key := func(name string) decode.Path { return c.inputPath(append(slices.Clone(place), i, name)...) }
		at := key("path")
		switch {
		case strings.TrimSpace(f.Path) == "":
			c.reportf(decode.Error, decode.CodeMissingField, at, "%s[%d] has no path", decode.Path(place), i)
			continue
		case !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) == "." || strings.ContainsRune(f.Path, 0):
			c.reportf(decode.Error, decode.CodeEscapingPath, at, "path %q must be relative and inside the workspace", text.Clip(f.Path, 80))
			continue
		}
		f.Path = path.Clean(filepath.ToSlash(f.Path))
		if targets[f.Path] {
			c.reportf(decode.Warning, decode.CodeNoEffect, at, "duplicate file %s; the last one counts", f.Path)
		}
		targets[f.Path] = true
		switch {
		case f.From != "" && f.Content != nil:
			c.reportf(decode.Error, decode.CodeInvalidValue, key("source"), "a file has content or a source, not both")
		case f.From != "":
			c.addSource(f, key("source"))
			continue
		case f.Content == nil:
			f.Source = c.find(f.Path, at)
		}
		*list = append(*list, f)
	}
}

// addSource adds the file or folder that the key source of a file names.
func (c *fixtureCheck) addSource(f InputFile, at decode.Path) {
	switch from, info := c.stat("source", f.From, at); {
	case info == nil:
	case info.IsDir():
		c.addFolder(from, f.Path, at)
	default:
		c.addFile(filepath.Dir(from), filepath.Base(from), f.Path, at)
	}
}

func (c *fixtureCheck) checkContextDir() {
	l := c.loader
	dir := l.suite.Path(c.task.ContextDir)
	l.dependsOn(dir)
	switch {
	case filepath.IsAbs(c.task.ContextDir) || !files.Within(l.suite.Root(), dir):
		c.reportf(decode.Error, decode.CodeEscapingPath, decode.At("context_dir"),
			"context_dir must be relative to the suite and inside %s", l.suite.RootWord())
	case !files.IsDir(dir):
		c.reportf(decode.Error, decode.CodeMissingFile, decode.At("context_dir"), "no such directory: %s", l.display(dir))
	}
}

// find returns the absolute path of a fixture, or "" when it cannot be used.
func (c *fixtureCheck) find(rel string, at decode.Path) string {
	l := c.loader
	dir := c.fixtureDir()
	file := filepath.Join(dir, filepath.FromSlash(rel))
	l.dependsOn(file)
	info, err := os.Stat(file)
	if beside := l.beside(c.task); errors.Is(err, fs.ErrNotExist) && beside != "" && l.options.ContextDir == "" {
		near := filepath.Join(beside, filepath.FromSlash(rel))
		l.dependsOn(near)
		if nearInfo, nearErr := os.Stat(near); nearErr == nil {
			dir, file, info, err = beside, near, nearInfo, nil
		}
	} else if beside != "" && err == nil && l.options.ContextDir == "" {
		l.reportAmbiguous(c.src, decode.Place(c.node, at...), file, filepath.Join(beside, filepath.FromSlash(rel)))
	}
	if c.usable(dir, file, rel, info, err, at) {
		return file
	}
	return ""
}

// hint returns a hint for a missing fixture, if a file of that path is beside the suite.
func (c *fixtureCheck) hint(rel string) string {
	if files.IsRegular(filepath.Join(c.loader.suite.Dir, filepath.FromSlash(rel))) {
		return " (paths are relative to the fixture directory, but the file is beside the suite: set context_dir to \".\")"
	}
	return ""
}
