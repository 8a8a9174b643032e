package tokens

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/files"
)

// Limits of a search.
const (
	mostFiles = 10_000
	mostDepth = 32
)

// MaxBytes is the size limit of a counted file in bytes.
const MaxBytes = 4 << 20

// IsMarkdown reports whether the name of a file is that of a counted file.
func IsMarkdown(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".md" || ext == ".mdx"
}

// Skipped reports whether files below a directory of that name are skipped.
func Skipped(name string) bool {
	return slices.Contains([]string{"node_modules", ".git", "dist", "coverage"}, name)
}

// Find returns the Markdown files at or below a path, in order. It does not follow links. It
// returns an error if the path does not exist, or if there are more than 10,000 files.
func Find(path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s: %s", path, files.Reason(err))
	} else if !info.IsDir() {
		return []string{path}, nil
	}
	var found []string
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read has no files to count
		case d.IsDir() && name != path && (Skipped(d.Name()) ||
			strings.Count(name, string(filepath.Separator)) > mostDepth+strings.Count(path, string(filepath.Separator))):
			return fs.SkipDir
		case d.Type().IsRegular() && IsMarkdown(name):
			if found = append(found, name); len(found) > mostFiles {
				return fmt.Errorf("%s: more than %d Markdown files", path, mostFiles)
			}
		}
		return nil
	})
	return found, err
}

// Read returns the content of a file, of at most [MaxBytes]. The error contains the path.
func Read(file string) (string, error) {
	data, err := files.Read(file, MaxBytes)
	if err != nil {
		return "", fmt.Errorf("%s: %s", file, files.Reason(err))
	}
	return string(data), nil
}
