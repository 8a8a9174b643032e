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

// MostMatched bounds the files that one search by a pattern looks at.
const MostMatched = 500_000

// Match returns the regular files below dir whose path matches a pattern, and whether
// it looked at all of them. It goes as many levels deep as depth says, does not follow
// links to directories, and keeps out of .git and node_modules.
func Match(pattern *regexp.Regexp, dir string, depth int, v files.View) (found []string, whole bool) {
	w := &globWalk{pattern: pattern, dir: dir, view: v}
	w.directory("", depth)
	return w.found, w.seen <= MostMatched
}

type globWalk struct {
	pattern *regexp.Regexp
	dir     string
	view    files.View
	seen    int
	found   []string
}

// directory looks through a directory given by its path below w.dir, and depth
// levels of those in it.
func (w *globWalk) directory(rel string, depth int) {
	dir := filepath.Join(w.dir, filepath.FromSlash(rel))
	w.view.Note(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // what cannot be listed matches nothing
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
				w.directory(name, depth-1)
			}
		case w.pattern.MatchString(name) && files.IsRegular(full):
			w.found = append(w.found, full)
		}
	}
}

// Depth is how many directories deep a pattern may match.
func Depth(pattern string) int {
	if strings.Contains(pattern, "**") {
		return decode.MaxDepth
	}
	return strings.Count(pattern, "/")
}
