package tokens

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/project"
)

// LimitsFile is the name of a file with limits. It counts if .waza.yaml has none.
const LimitsFile = ".token-limits.json"

// usual are the default limits.
var usual = map[string]int{
	"SKILL.md": 500, "references/**/*.md": 1000, "docs/**/*.md": 1500, "*.md": 2000, "README.md": 3000, "CONTRIBUTING.md": 2500,
}

// usualFallback is the default limit of files that no pattern matches.
const usualFallback = 2000

// Limits are the maximum numbers of tokens of files.
type Limits struct {
	// Dir is the directory that paths are relative to.
	Dir string
	// Warning is the number of tokens of a SKILL.md that causes a warning; 0 for never.
	Warning int

	defaults, overrides map[string]int
	fallback            int
	patterns            []string // keys of defaults, the most specific first
}

// FindLimits finds the limits for the files of a directory: those of the nearest .waza.yaml,
// else of the nearest .token-limits.json, else the defaults. The diagnostics are those of the
// .waza.yaml. The error describes the fault of a .token-limits.json.
func FindLimits(dir string) (*Limits, decode.Diagnostics, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	l := &Limits{Dir: dir, defaults: usual, fallback: usualFallback}
	p, ds, err := project.Find(dir, files.View{})
	if err != nil {
		return nil, ds, err
	}
	if p != nil {
		l.Warning = p.Tokens.WarningThreshold
		if p.Tokens.FallbackLimit > 0 {
			l.fallback = p.Tokens.FallbackLimit
		}
	}
	if p != nil && p.Tokens.Limits != nil {
		l.Dir = p.Dir()
		l.defaults, l.overrides = p.Tokens.Limits.Defaults, p.Tokens.Limits.Overrides
	} else if err := l.fromFile(dir); err != nil {
		return nil, ds, err
	}
	l.patterns = slices.SortedFunc(maps.Keys(l.defaults), func(a, b string) int {
		return -compare(specificity(a), specificity(b), a, b)
	})
	return l, ds, nil
}

// fromFile uses the limits of the nearest .token-limits.json, if there is one.
func (l *Limits) fromFile(dir string) error {
	for dir := range files.Upwards(dir, project.MaxLevelsUp) {
		name := filepath.Join(dir, LimitsFile)
		data, err := files.Read(name, 1<<20)
		switch {
		case err == nil:
			l.Dir = dir
			return l.parse(name, data)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s: %s", name, files.Reason(err))
		}
	}
	return nil
}

// parse decodes JSON as YAML, so that findings have lines.
func (l *Limits) parse(name string, data []byte) error {
	var found decode.Findings
	src := decode.Parse(name, name, data, &found)
	var given struct {
		Defaults  map[string]int `yaml:"defaults"`
		Overrides map[string]int `yaml:"overrides"`
	}
	if src.Root != nil && src.Root.Kind == yaml.MappingNode {
		decode.NewDecoder(src, &found).Into(src.Root, &given)
	} else if !found.Diagnostics().HasErrors() {
		return fmt.Errorf("%s must be an object with defaults and overrides", name)
	}
	for _, d := range found.Diagnostics() {
		if d.Severity == decode.Error {
			return fmt.Errorf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
		}
	}
	l.defaults, l.overrides = given.Defaults, given.Overrides
	return nil
}

func compare(a, b int, x, y string) int {
	if a != b {
		return a - b
	}
	return strings.Compare(y, x)
}

// specificity rates patterns: those that match fewer files rate higher. Patterns without
// wildcards come first, then those with more other characters.
func specificity(pattern string) int {
	n := len(strings.NewReplacer("*", "", "?", "").Replace(pattern))
	if !strings.ContainsAny(pattern, "*?[{") {
		n += 1 << 20
	}
	return n
}

// Of returns the limit of a file and its source: a path or pattern of the limits, or "fallback".
// The file is relative to [Limits.Dir] or absolute. A pattern can match the end of a path after
// any slash.
func (l *Limits) Of(file string) (limit int, pattern string) {
	if filepath.IsAbs(file) {
		if rel, err := filepath.Rel(l.Dir, file); err == nil {
			file = rel
		}
	}
	name := path.Clean(filepath.ToSlash(file))
	for p, n := range l.overrides {
		if path.Clean(filepath.ToSlash(p)) == name {
			return n, p
		}
	}
	for _, p := range l.patterns {
		if ok, _ := doublestar.Match(p, name); ok {
			return l.defaults[p], p
		}
		if ok, _ := doublestar.Match("**/"+strings.TrimPrefix(p, "/"), name); ok {
			return l.defaults[p], p
		}
	}
	return l.fallback, "fallback"
}
