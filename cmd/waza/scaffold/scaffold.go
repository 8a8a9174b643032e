// Package scaffold implements `waza init`, `waza new` and `waza suggest`, which write new
// projects, skills, suites and tasks. Call [Init], [New] and [Suggest] for the commands.
//
// It overwrites a file only if asked to. Each file appears complete or not at all, so Ctrl-C
// leaves no partial files.
package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/cmd/waza/question"
	"waza/eval/files"
	"waza/eval/text"
)

// Options holds the parts of the program that the commands need. All fields are required. Its
// methods are the commands and their steps, a file per command; they own nothing else.
type Options struct {
	question.Asker
	// Commit is the commit that this program was built from; empty if unknown or changed.
	Commit string
}

// item is a file or directory of a scaffold.
type item struct {
	path  string // relative to the directory of the scaffold, with slashes
	text  string // of a file
	isDir bool
}

// written is the outcome for an item.
type written struct {
	Path  string `json:"path"`
	Added bool   `json:"added"` // false: it existed
}

// scaffold is a set of items to write below a directory.
type scaffold struct {
	dir   string // as the caller named it
	items []item
}

func (s *scaffold) file(path, text string) { s.items = append(s.items, item{path: path, text: text}) }

func (s *scaffold) directory(path string) {
	s.items = append(s.items, item{path: strings.TrimSuffix(path, "/") + "/", isDir: true})
}

// existing returns the paths of files that exist, as the caller would name them.
func (s *scaffold) existing() (paths []string) {
	for _, it := range s.items {
		path := s.path(it)
		if _, err := os.Lstat(path); err == nil && !it.isDir {
			paths = append(paths, path)
		}
	}
	return paths
}

func (s *scaffold) path(it item) string {
	return filepath.Join(s.dir, filepath.FromSlash(it.path))
}

// write creates the missing items. It ends with the cause of ctx between two items; the result
// contains the items written until then.
func (s *scaffold) write(ctx context.Context) (done []written, err error) {
	if err := files.MakeDir(s.dir, 0o777); err != nil {
		return nil, err
	}
	for _, it := range s.items {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		added, err := s.writeOne(it)
		if err != nil {
			return done, err
		}
		done = append(done, written{it.path, added})
	}
	return done, nil
}

func (s *scaffold) writeOne(it item) (added bool, err error) {
	path := s.path(it)
	switch info, err := os.Lstat(path); {
	case err == nil && it.isDir && !files.IsDir(path):
		return false, fmt.Errorf("%s is a file, expected a directory", path)
	case err == nil && !it.isDir && info.IsDir():
		return false, fmt.Errorf("%s is a directory, expected a file", path)
	case err == nil:
		return false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if it.isDir {
		return true, outside(path, makeDir(s.dir, it.path))
	}
	return true, outside(path, create(s.dir, path, it.text))
}

// makeDir makes a directory below dir. It rejects links to places outside of dir.
func makeDir(dir, path string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(filepath.FromSlash(strings.TrimSuffix(path, "/")), 0o777)
}

// outside turns an error about a link out of the scaffold into a usage error.
func outside(path string, err error) error {
	if errors.Is(err, files.ErrEscapes) || err != nil && strings.Contains(err.Error(), "path escapes from parent") {
		return exit.Usagef("name another directory", "%s is a link to a place outside the target directory", path)
	}
	return err
}

// create writes a file below dir, and makes its directories. It rejects links to places outside
// of dir.
func create(dir, path, text string) error {
	f, err := files.ReplaceWithin(dir, path)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return f.Finish(err)
}

// show prints a line for each item.
func (o Options) show(done []written) {
	for _, w := range done {
		mark := "✅"
		if w.Added {
			mark = "➕"
		}
		fmt.Fprintf(o.Stdout, "%s %s\n", mark, output.Clean(w.Path))
	}
}

func countAdded(done []written) (n int) {
	for _, w := range done {
		if w.Added {
			n++
		}
	}
	return n
}

// finish gives the error of an interrupted command its exit code.
func finish(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return exit.New(exit.Interrupted, errors.New("interrupted"), "the files written so far are complete; the same command writes the rest")
	}
	return err
}

// mostName is the longest name of a skill, in characters.
const mostName = 64

var namePattern = text.Pattern(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// checkName rejects invalid names of skills.
func checkName(name string) error {
	if len(name) <= mostName && namePattern().MatchString(name) {
		return nil
	}
	hint := fmt.Sprintf("use at most %d lower-case letters, digits and single hyphens", mostName)
	if better := toName(name); better != "" && better != name {
		hint += ", such as " + better
	}
	return exit.Usagef(hint, "invalid skill name %q", text.Clip(name, 80))
}

// toName makes a name from any text; the result can be empty.
func toName(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return strings.Trim(name[:min(len(name), mostName)], "-")
}

// title makes a heading from a name: code-explainer becomes Code Explainer.
func title(name string) string {
	words := strings.Split(name, "-")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}
