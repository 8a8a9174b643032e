package discover

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"waza/eval/decode"
	"waza/eval/files"
)

// MostMatched limits the number of files that one search by a pattern visits.
const MostMatched = 500_000

// Match returns the regular files below dir whose path matches a pattern, and whether it visited
// all files. It visits depth levels, does not follow links to directories, and skips .git and
// node_modules.
func Match(pattern *regexp.Regexp, dir string, depth int, v files.View) (found []string, whole bool) {
	w := &globWalk{pattern: pattern, dir: dir, view: v}
	w.searchDirectory("", depth)
	return w.found, w.seen <= MostMatched
}

type globWalk struct {
	pattern *regexp.Regexp
	dir     string
	view    files.View
	seen    int
	found   []string
}

// searchDirectory searches a directory, given by its path below w.dir, and depth levels below it.
func (w *globWalk) searchDirectory(rel string, depth int) {
	dir := filepath.Join(w.dir, filepath.FromSlash(rel))
	w.view.Note(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // a directory that cannot be listed matches nothing
	}
	for _, e := range entries {
		if w.seen++; w.seen > MostMatched {
			return
		}
		name := path.Join(rel, e.Name())
		full := filepath.Join(w.dir, filepath.FromSlash(name))
		switch {
		case e.IsDir():
			if depth > 0 && e.Name() != ".git" && e.Name() != "node_modules" {
				w.searchDirectory(name, depth-1)
			}
		case w.pattern.MatchString(name) && isRegular(e, full):
			w.found = append(w.found, full)
		}
	}
}

// Depth returns how many directory levels a pattern can match.
func Depth(pattern string) int {
	if strings.Contains(pattern, "**") {
		return decode.MaxDepth
	}
	return strings.Count(pattern, "/")
}

// isRegular reports whether an entry of a directory is a regular file or a link to one. full is its
// path.
func isRegular(e os.DirEntry, full string) bool {
	return e.Type().IsRegular() || files.IsRegular(full) // most systems list types, which saves a call
}
