package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/relocate"
	"waza/eval/text"
	"waza/runner/record"
)

// scheme is the prefix of portable paths in orders. A path of the manifest follows it.
const scheme = "waza-bundle:/"

// errReserved is the error for a text of a suite that looks like a portable path.
var errReserved = errors.New(`a text of the suite starts with "` + scheme + `", which is reserved for paths of a fleet; change the text`)

// places are the numbered directories and repositories of an owner.
type places struct {
	roots []string // absolute and clean; none contains a different one
	repos []string
}

// find returns the root of a path, and the path below it with slashes.
func (p *places) find(file string) (root int, rel string, ok bool) {
	for i, dir := range p.roots {
		if filepath.Dir(dir) == dir && file != dir { // the root of the file system contains only itself
			continue
		}
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return i, filepath.ToSlash(rel), true
		}
	}
	return 0, "", false
}

// portable returns a path of the owner in the form of manifests.
func (p *places) portable(file string) (string, bool) {
	root, rel, ok := p.find(file)
	switch {
	case !ok:
		return "", false
	case rel == ".":
		return fmt.Sprint(root), true
	}
	return fmt.Sprintf("%d/%s", root, rel), true
}

// outgoing returns a copier that makes the paths of orders portable. travels reports whether a
// portable path is in the manifest. Other words, such as /usr/bin/python3, do not change.
func (p *places) outgoing(travels func(path string) bool) *relocate.Copier {
	maybe := func(word string) (string, error) {
		if strings.HasPrefix(word, scheme) {
			return "", errReserved
		}
		if filepath.IsAbs(word) {
			if to, ok := p.portable(filepath.Clean(word)); ok && travels(to) {
				return scheme + to, nil
			}
		}
		return word, nil
	}
	return &relocate.Copier{
		File: func(path string) (string, error) {
			to, ok := p.portable(path)
			if !ok {
				return "", fmt.Errorf("%s is not in a packed directory", path)
			}
			return scheme + to, nil
		},
		Repo: func(path string) (string, error) {
			for i, dir := range p.repos {
				if dir == path {
					return fmt.Sprintf("%sg%d", scheme, i), nil
				}
			}
			return "", fmt.Errorf("the repository %s is not packed", path)
		},
		Maybe: maybe,
		Words: func(command string) (string, error) {
			if _, err := os.Lstat(command); err == nil && filepath.IsAbs(command) { // its name can contain spaces
				return maybe(command)
			}
			return eachWord(maybe)(command)
		},
	}
}

// incoming returns a copier that converts portable paths to paths in a directory. It rejects
// paths that are not portable but must be, and paths that lead out of the directory.
func incoming(dir string) *relocate.Copier {
	local := func(path string) (string, error) {
		rest, ok := strings.CutPrefix(path, scheme)
		if !ok {
			return "", fmt.Errorf("%q is not a path of the bundle", text.Clip(path, 200))
		}
		first, _, _ := strings.Cut(rest, "/")
		if !isPortable(rest) || !numbered().MatchString(strings.TrimPrefix(first, "g")) {
			return "", fmt.Errorf("%q leads out of the bundle", text.Clip(path, 200))
		}
		return filepath.Join(dir, filepath.FromSlash(rest)), nil
	}
	maybe := func(word string) (string, error) {
		if !strings.HasPrefix(word, scheme) {
			return word, nil
		}
		return local(word)
	}
	return &relocate.Copier{File: local, Repo: local, Maybe: maybe, Words: eachWord(maybe)}
}

// eachWord returns a function that maps each word of a shell command, or a text as a whole.
func eachWord(mapping func(word string) (string, error)) func(string) (string, error) {
	return func(command string) (string, error) {
		var b strings.Builder
		for rest := command; rest != ""; {
			end := strings.IndexFunc(rest, reach.BetweenWords)
			if end < 0 {
				end = len(rest)
			}
			word, err := mapping(rest[:end])
			if err != nil {
				return "", err
			}
			b.WriteString(word)
			rest = rest[end:]
			if next := strings.IndexFunc(rest, func(r rune) bool { return !reach.BetweenWords(r) }); next > 0 {
				b.WriteString(rest[:next])
				rest = rest[next:]
			} else if next < 0 {
				b.WriteString(rest)
				rest = ""
			}
		}
		return b.String(), nil
	}
}

// needed are the paths in orders.
type needed struct {
	files map[string]bool // paths of files and directories
	words map[string]bool // absolute paths of regular files in texts of the suite
	repos map[string]bool
}

// maxWords is the maximum number of words of commands that are checked.
const maxWords = 10_000

// gather collects the paths in orders.
func gather(orders []*record.Order) (*needed, error) {
	n := &needed{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	looked := 0
	word := func(word string) (string, error) {
		if filepath.IsAbs(word) && looked < maxWords {
			looked++
			if files.IsRegular(word) {
				n.words[filepath.Clean(word)] = true
			}
		}
		return word, nil
	}
	c := &relocate.Copier{
		File:  func(path string) (string, error) { n.files[filepath.Clean(path)] = true; return path, nil },
		Repo:  func(path string) (string, error) { n.repos[path] = true; return path, nil },
		Maybe: word,
		Words: func(command string) (string, error) {
			_, _ = word(command)
			return eachWord(word)(command)
		},
	}
	for _, o := range orders {
		if _, err := o.Relocate(c); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// newPlaces returns the outermost of the directories that contain the given files.
func newPlaces(list []string) *places {
	p := &places{}
	dirs := map[string]bool{}
	for _, file := range list {
		if !files.IsDir(file) {
			file = filepath.Dir(file)
		}
		dirs[file] = true
	}
	// Shorter paths come first, because they can contain the others.
	for _, dir := range slices.SortedFunc(maps.Keys(dirs),
		func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }) {
		if _, _, ok := p.find(dir); !ok {
			p.roots = append(p.roots, dir)
		}
	}
	return p
}
