package promptfoo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"waza/eval/decode"
	"waza/eval/text"
)

// filePrefix marks a text that names a file.
const filePrefix = "file://"

// codeExtensions are those of files that promptfoo runs as programs.
var codeExtensions = []string{".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb"}

// nodeExtensions are those of files that Node.js runs.
var nodeExtensions = []string{".js", ".cjs", ".mjs", ".ts", ".cts", ".mts"}

// isCode reports whether a reference names a program, perhaps with one of its functions.
func isCode(ref string) bool {
	file, _ := splitFunction(ref)
	return slices.Contains(codeExtensions, path.Ext(file))
}

// splitFunction splits the reference FILE:FUNCTION.
func splitFunction(ref string) (file, function string) {
	ref = strings.TrimPrefix(ref, filePrefix)
	if i := strings.LastIndexByte(ref, ':'); i > 1 {
		return ref[:i], ref[i+1:]
	}
	return ref, ""
}

// path returns the absolute path of a file that the configuration names.
func (tr *translator) path(ref string) string {
	name := filepath.FromSlash(strings.TrimPrefix(ref, filePrefix))
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(tr.Source.Path), name)
}

// read returns the text of a file.
func (tr *translator) read(file string) (string, error) {
	data, err := tr.Files.Read(file, decode.MaxTextBytes)
	if err == nil {
		var content string
		if content, _, err = decode.PlainText(data, false); err == nil {
			return content, nil
		}
	}
	var fault *fs.PathError
	if errors.As(err, &fault) {
		err = fault.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the file %s does not exist", tr.Files.Shown(file))
	}
	return "", fmt.Errorf("the file %s cannot be read: %w", tr.Files.Shown(file), err)
}

// parse reads and parses a YAML or JSON file. It reports faults of its text, and then returns a source
// without a root.
func (tr *translator) parse(file string) (*decode.Source, error) {
	if found, ok := tr.parsed[file]; ok {
		return found, nil
	}
	if _, err := tr.read(file); err != nil {
		return nil, err
	}
	data, err := tr.Files.Read(file, decode.MaxTextBytes)
	if err != nil {
		return nil, err
	}
	src := tr.Files.Parse(file, data)
	tr.merge(src)
	tr.parsed[file] = src
	return src, nil
}

// maxAlternatives limits the texts that braces in a pattern mean, because a match tries all of them.
const maxAlternatives = 100

// alternatives returns at least the number of texts that the braces in a pattern mean, or more than
// maxAlternatives.
func alternatives(pattern string) int {
	count := 1
	for _, group := range strings.Split(pattern, "{")[1:] {
		if count *= 1 + strings.Count(group, ","); count > maxAlternatives {
			break
		}
	}
	return count
}

// maxGlobbed limits the directory entries that a pattern looks at.
const maxGlobbed = 20_000

// glob returns the files that a pattern matches, sorted; a name without special characters is returned
// as it is.
func (tr *translator) glob(pattern string) ([]string, error) {
	full := filepath.ToSlash(tr.path(pattern))
	if !strings.ContainsAny(pattern, "*?[{") {
		return []string{filepath.FromSlash(full)}, nil
	}
	if !doublestar.ValidatePattern(full) {
		return nil, fmt.Errorf("%q is no pattern of file names", text.Clip(pattern, 60))
	}
	if alternatives(full) > maxAlternatives {
		return nil, fmt.Errorf("the pattern %q has more than %d alternatives in braces", text.Clip(pattern, 60), maxAlternatives)
	}
	base, _ := doublestar.SplitPattern(full)
	var found []string
	left := maxGlobbed
	var walk func(dir string) error
	walk = func(dir string) error {
		entries, err := tr.Files.List(filepath.FromSlash(dir))
		if err != nil {
			return nil // as if it were empty
		}
		for _, e := range entries {
			if left--; left < 0 {
				return fmt.Errorf("the pattern %q looks at more than %d files", text.Clip(pattern, 60), maxGlobbed)
			}
			name := path.Join(dir, e.Name())
			switch {
			case e.IsDir() && e.Name() != "node_modules" && e.Name() != ".git":
				if err := walk(name); err != nil {
					return err
				}
			case !e.IsDir() && doublestar.MatchUnvalidated(full, name):
				found = append(found, filepath.FromSlash(name))
			}
		}
		return nil
	}
	if err := walk(base); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no file matches %q", text.Clip(pattern, 60))
	}
	slices.Sort(found)
	return found, nil
}
