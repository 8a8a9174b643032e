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
	if rel == "" {
		return "", nil, false
	}
	if filepath.IsAbs(rel) {
		return rel, []string{rel}, files.IsRegular(rel)
	}
	dirs := []string{p.Dir, p.Root()}
	if beside != "" {
		dirs = append(dirs, beside)
	}
	if wd := p.workDir(); wd != "" {
		dirs = append(dirs, wd)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, filepath.FromSlash(rel))
		if slices.Contains(tried, path) {
			continue
		}
		tried = append(tried, path)
		if files.IsRegular(path) {
			return path, tried, true
		}
	}
	return "", tried, false
}

// Path returns the absolute path for a path relative to the suite's directory.
func (p Places) Path(path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(p.Dir, path)
}
