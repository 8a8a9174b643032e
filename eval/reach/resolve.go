package reach

import (
	"path/filepath"
	"slices"

	"waza/eval/files"
)

// Resolve finds a regular file that the suite names by a relative path. It looks in the suite's
// directory, then in its repository's root (see [Places.Root]), then in beside, unless that is
// "", then in the current directory. It returns the file's absolute path and all paths that it
// tried. It uses an absolute path unchanged.
func (p Places) Resolve(rel, beside string) (abs string, tried []string, ok bool) {
	if filepath.IsAbs(rel) {
		return rel, []string{rel}, files.IsRegular(rel)
	}
	for _, path := range p.Candidates(rel, beside) {
		tried = append(tried, path)
		if files.IsRegular(path) {
			return path, tried, true
		}
	}
	return "", tried, false
}

// Candidates returns the paths at which [Places.Resolve] looks for a file, in this order. They
// need not exist.
func (p Places) Candidates(rel, beside string) []string {
	if rel == "" {
		return nil
	}
	if filepath.IsAbs(rel) {
		return []string{rel}
	}
	dirs := []string{p.Dir, p.Root()}
	if beside != "" {
		dirs = append(dirs, beside)
	}
	if wd := p.workDir(); wd != "" {
		dirs = append(dirs, wd)
	}
	var paths []string
	for _, dir := range dirs {
		if path := filepath.Join(dir, filepath.FromSlash(rel)); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Path returns the absolute path for a path relative to the suite's directory.
func (p Places) Path(path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(p.Dir, path)
}
