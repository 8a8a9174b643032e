package program

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"waza/eval/surroundings"
)

// ofVerifier reports whether a clean absolute path is one that only the verifier fills, or below one.
func ofVerifier(abs string) bool { return isBelow(abs, testsInside) || isBelow(abs, logsInside) }

// isBelow reports whether a clean path is dir or below it.
func isBelow(abs, dir string) bool { return abs == dir || strings.HasPrefix(abs, dir+"/") }

// placing returns the numbers of the artifacts to copy, in the order in which they are placed: outer ones first. One
// that is in another, which excludes nothing, is a part of that.
func placing(artifacts []Artifact) (list []int) {
	source := func(i int) string { return path.Clean(artifacts[i].Source) }
	for i := range artifacts {
		if !ofVerifier(source(i)) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(i, j int) int {
		return cmp.Or(cmp.Compare(source(i), source(j)), cmp.Compare(len(artifacts[i].Exclude), len(artifacts[j].Exclude)))
	})
	var outer []int
	return slices.DeleteFunc(list, func(i int) bool {
		if slices.ContainsFunc(outer, func(o int) bool { return isBelow(source(i), source(o)) }) {
			return true
		}
		if len(artifacts[i].Exclude) == 0 {
			outer = append(outer, i)
		}
		return false
	})
}

// covered reports whether a directory is below one of some paths.
func covered(paths map[string]string, dir string) bool {
	for target := range paths {
		if isBelow(dir, target) {
			return true
		}
	}
	return false
}

// placeAll moves copies of artifacts, which are below a directory under their numbers, to their places in the
// workspace of a verifier. One that cannot be moved is lost.
func placeAll(logs, fresh string, artifacts []Artifact, order []int, own *surroundings.TaskSandbox) ([]CopiedArtifact, error) {
	in := filepath.Dir(fresh) // contains both
	root, err := os.OpenRoot(in)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	from, err := filepath.Rel(in, logs)
	if err != nil {
		return nil, err
	}
	var list []CopiedArtifact
	for _, i := range order {
		source := path.Clean(artifacts[i].Source)
		t := tidying{root: root, source: source}
		for _, p := range artifacts[i].Exclude {
			t.rules = append(t.rules, tarPattern(p))
		}
		one := CopiedArtifact{Source: source}
		isDir, err := t.place(filepath.Join(from, fmt.Sprint(i)), filepath.Join(filepath.Base(fresh), outside, filepath.FromSlash(source)))
		switch dir := source; {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			one.Lost = err.Error()
		default:
			one.Files, one.Bytes = t.files, t.bytes
			if !isDir {
				dir = path.Dir(source)
			}
			if !covered(own.Paths, dir) {
				own.Paths[dir] = outside + dir
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// tidying removes from the copy of an artifact everything that its verifier does not get. Programs of the agent can have
// written the copy: it can contain names of any bytes, links that lead anywhere, pipes, and directories that
// this user may not read.
type tidying struct {
	root   *os.Root
	source string // clean
	rules  []*regexp.Regexp
	files  int
	bytes  int64
}

// maxPath limits the paths of artifacts, so that the verifier can have all of them at longer paths.
const maxPath = 3000

// place moves the copy to its place. Its error is [fs.ErrNotExist] if nothing is left of it.
func (t *tidying) place(from, to string) (isDir bool, err error) {
	if err := t.tidy(from, "", false); err != nil {
		return false, err
	}
	info, err := t.root.Lstat(from)
	if err != nil {
		return false, err
	}
	if err := makeDirs(t.root, filepath.Dir(to)); err != nil {
		return false, err
	}
	return info.IsDir(), merge(t.root, from, to)
}

// tidy tidies a file or a directory. rel is its path in the artifact; empty means the artifact itself.
func (t *tidying) tidy(name, rel string, drop bool) error {
	info, err := t.root.Lstat(name)
	if err != nil {
		return err
	}
	abs := path.Join(t.source, rel)
	if len(abs) > maxPath {
		return t.root.RemoveAll(name)
	}
	drop = drop || ofVerifier(abs) ||
		rel != "" && slices.ContainsFunc(t.rules, func(r *regexp.Regexp) bool { return r.MatchString(rel) })
	switch mode := info.Mode(); {
	case mode.IsDir():
		return t.tidyDir(name, rel, mode, drop)
	case mode&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(name)
		drop = drop || rel == "" || err != nil || !isHarmless(abs, to)
	case !mode.IsRegular():
		drop = true
	case !drop:
		t.files, t.bytes = t.files+1, t.bytes+info.Size()
		if mode.Perm()&0o600 != 0o600 {
			return t.root.Chmod(name, mode.Perm()|0o600)
		}
	}
	if drop {
		return t.root.Remove(name)
	}
	return nil
}

func (t *tidying) tidyDir(name, rel string, mode fs.FileMode, drop bool) error {
	if mode.Perm()&0o700 != 0o700 {
		if err := t.root.Chmod(name, mode.Perm()|0o700); err != nil {
			return err
		}
	}
	names, err := namesIn(t.root, name)
	if err != nil {
		return err
	}
	for _, below := range names {
		if err := t.tidy(filepath.Join(name, below), path.Join(rel, below), drop); err != nil {
			return err
		}
	}
	if drop {
		return t.root.Remove(name)
	}
	return nil
}

// isHarmless reports whether a link at an absolute path can be in the sandbox of a verifier. It does not lead to the
// tests, the rewards or the processes, whose content would look like work of the agent.
func isHarmless(at, to string) bool {
	if !path.IsAbs(to) {
		dir := path.Dir(at)
		for {
			rest, up := strings.CutPrefix(strings.TrimLeft(to, "/"), "..")
			if !up || rest != "" && rest[0] != '/' {
				break
			}
			dir, to = path.Dir(dir), rest
		}
		to = dir + "/" + to
	}
	if slices.Contains(strings.Split(to, "/"), "..") { // after a folder that can itself be a link
		return false
	}
	to = path.Clean(to)
	return to != "/" && !ofVerifier(to) && !slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(dir string) bool { return isBelow(to, dir) }) && !isBelow(logsInside, to)
}

// namesIn returns the names in a directory. Unlike those of io/fs, they can be any bytes.
func namesIn(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// makeDirs makes a directory and those above. It replaces links and files by directories.
func makeDirs(root *os.Root, dir string) error {
	for i := 1; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != filepath.Separator {
			continue
		}
		info, err := root.Lstat(dir[:i])
		if err == nil && info.IsDir() {
			continue
		}
		if err == nil {
			err = root.Remove(dir[:i])
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := root.Mkdir(dir[:i], 0o755); err != nil {
			return err
		}
	}
	return nil
}

// merge moves a file or a directory, and keeps other files of a directory at its place.
func merge(root *os.Root, from, to string) error {
	old, err := root.Lstat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return root.Rename(from, to)
	}
	if err != nil {
		return err
	}
	info, err := root.Lstat(from)
	if err != nil {
		return err
	}
	if !old.IsDir() || !info.IsDir() {
		if err := root.RemoveAll(to); err != nil {
			return err
		}
		return root.Rename(from, to)
	}
	names, err := namesIn(root, from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := merge(root, filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// tarPattern returns the expression of a pattern of tar --exclude: it matches a path, or the end of one after
// a slash, and its wildcards match slashes, too. One that fits nothing, such as [b-a], matches nothing.
func tarPattern(glob string) *regexp.Regexp {
	glob = strings.TrimSuffix(strings.TrimPrefix(glob, "./"), "/")
	var b strings.Builder
	for len(glob) > 0 {
		_, width := utf8.DecodeRuneInString(glob)
		set, size := setOf(glob)
		switch {
		case set != "":
			b.WriteString(set)
			width = size
		case glob[0] == '*':
			b.WriteString(".*")
		case glob[0] == '?':
			b.WriteString(".")
		case glob[0] == '\\' && len(glob) > 1:
			glob = glob[1:]
			_, width = utf8.DecodeRuneInString(glob)
			b.WriteString(regexp.QuoteMeta(glob[:width]))
		default:
			b.WriteString(regexp.QuoteMeta(glob[:width]))
		}
		glob = glob[width:]
	}
	rule, err := regexp.Compile("(?s)^(?:.*/)?" + b.String() + "$")
	if err != nil {
		return regexp.MustCompile(`$.^`)
	}
	return rule
}

// setOf returns the expression of a set of characters at the start of a pattern, such as [ab] or [!0-9], and its
// length there; empty if there is no set.
func setOf(glob string) (set string, size int) {
	if !strings.HasPrefix(glob, "[") {
		return "", 0
	}
	body, negated := glob[1:], ""
	if strings.HasPrefix(body, "!") || strings.HasPrefix(body, "^") {
		body, negated = body[1:], "^"
	}
	if body == "" {
		return "", 0
	}
	end := 1 + strings.IndexByte(body[1:], ']') // a first ] is a member
	if end == 0 {
		return "", 0
	}
	members := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(body[:end])
	return "[" + negated + members + "]", len(glob) - len(body) + end + 1
}
