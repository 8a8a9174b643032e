package judge

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/reach"
	"waza/eval/text"
	"waza/runner/grader"
)

//go:embed rubrics/*.md
var builtinRubrics embed.FS

// Rubrics returns the names of the built-in rubrics, in order.
func Rubrics() []string {
	entries, err := builtinRubrics.ReadDir("rubrics")
	if err != nil {
		return nil // impossible, they are embedded
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".md")
	}
	return names
}

// The scales of rubrics.
const (
	scalePassFail = "pass-fail"
	scaleFive     = "1-5"
)

// rubricInfo holds the front matter of a rubric and its source.
type rubricInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Scale   string `json:"scale,omitempty"`
	// Source is builtin, or the path of the file as written in the suite.
	Source string `json:"source"`
}

// sourceBuiltin is the source of the built-in rubrics.
const sourceBuiltin = "builtin"

// A rubric describes what a judge should look for. The zero value is empty.
type rubric struct {
	text string
	info *rubricInfo // nil for a text in the suite and for a file without front matter
}

// frontMatter is the front matter of a rubric file. Description and goldens exist so that rubric
// files of other tools are accepted unchanged; they do not affect judging.
type frontMatter struct {
	Name        string `yaml:"name"`
	Version     string `yaml:"version"`
	Scale       string `yaml:"scale"`
	Description string `yaml:"description"`
	Goldens     []struct {
		Name     string `yaml:"name"`
		Input    any    `yaml:"input"`
		Output   any    `yaml:"output"`
		Context  any    `yaml:"context"`
		Expected any    `yaml:"expected"`
	} `yaml:"goldens"`
}

// readRubric reads a rubric file: optional front matter between lines of three hyphens, and the
// criteria. source is the path as written in the suite.
func readRubric(data []byte, source string) (rubric, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return rubric{text: string(data)}, nil
	}
	head, body, ok := bytes.Cut(rest, []byte("\n---"))
	if ok && len(body) > 0 && body[0] != '\n' {
		ok = false // not a separate line
	}
	if !ok {
		return rubric{text: string(data)}, nil // a horizontal rule, not front matter
	}
	var m frontMatter
	if err := yaml.Unmarshal(head, &m); err != nil {
		return rubric{}, fmt.Errorf("the front matter of the rubric is not valid: %s", text.Clip(strings.TrimPrefix(err.Error(), "yaml: "), 300))
	}
	if m.Scale != "" && m.Scale != scalePassFail && m.Scale != scaleFive {
		return rubric{}, fmt.Errorf("the scale of the rubric must be %s or %s, got %q", scalePassFail, scaleFive, text.Clip(m.Scale, 40))
	}
	criteria := strings.TrimSpace(string(body))
	if criteria == "" {
		return rubric{}, errors.New("the rubric has front matter but no criteria below it")
	}
	name := cmp.Or(m.Name, strings.TrimSuffix(path.Base(filepath.ToSlash(source)), ".md"))
	return rubric{
		text: criteria,
		info: &rubricInfo{Name: text.Clip(name, 200), Version: text.Clip(m.Version, 100), Scale: m.Scale, Source: text.Clip(source, 500)},
	}, nil
}

// builtinRubric returns the built-in rubric with a name.
func builtinRubric(name string) (rubric, bool) {
	if !slices.Contains(Rubrics(), name) {
		return rubric{}, false
	}
	data, err := builtinRubrics.ReadFile("rubrics/" + name + ".md")
	if err != nil {
		return rubric{}, false
	}
	r, err := readRubric(data, sourceBuiltin)
	return r, err == nil
}

// loadRubric returns the rubric of the options: a file, a built-in rubric, or the text itself. A
// file takes precedence over a built-in name.
func (o *PromptOptions) loadRubric(env *grader.Env) (rubric, error) {
	name := strings.TrimSpace(o.Rubric)
	if abs, ok := o.rubricFile(env); ok {
		data, err := env.ReadFile(abs)
		if err == nil {
			var r rubric
			if r, err = readRubric(data, name); err == nil {
				return r, nil
			}
		}
		return rubric{}, fmt.Errorf("rubric: %s: %w", name, err)
	}
	if r, ok := builtinRubric(name); ok {
		return r, nil
	}
	if looksLikePath(name) {
		return rubric{}, fmt.Errorf("rubric: no such file: %s", name)
	}
	return rubric{text: o.Rubric}, nil
}

// rubricFile returns the file that a rubric names; ok is false if it names none.
func (o *PromptOptions) rubricFile(suite reach.Resolver) (abs string, ok bool) {
	name := strings.TrimSpace(o.Rubric)
	if name == "" || len(name) >= 300 || strings.ContainsAny(name, "\n") {
		return "", false
	}
	abs, _, ok = o.Resolve(suite, name)
	return abs, ok
}

// looksLikePath reports whether a rubric must be the path of a file.
func looksLikePath(name string) bool {
	return name != "" && len(name) < 300 && !strings.ContainsAny(name, " \t\n{") &&
		(strings.HasSuffix(name, ".md") || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") ||
			strings.HasPrefix(name, "~/") || filepath.IsAbs(name))
}

var bareWord = text.Pattern(`^[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*$`)

// checkRubric reports a rubric that cannot be read, and a word that is probably meant as the
// name of one.
func (o *PromptOptions) checkRubric(c *eval.Check) {
	name := strings.TrimSpace(o.Rubric)
	if abs, ok := o.rubricFile(c.Suite()); ok {
		if !c.Allows(decode.At("rubric"), abs) {
			return
		}
		if data, err := c.ReadFile(abs); err == nil { // otherwise the run reports the error
			if _, err := readRubric(data, name); err != nil {
				c.Errorf(decode.At("rubric"), decode.CodeInvalidValue, "%s: %v", name, err)
			}
		}
		return
	}
	switch {
	case looksLikePath(name):
		c.File(decode.At("rubric"), name)
	case slices.Contains(Rubrics(), name) || !bareWord().MatchString(name):
	default:
		c.Suggestf(decode.At("rubric"), decode.Warning, decode.CodeInvalidValue, decode.Nearest(name, Rubrics()),
			"rubric %q is used as a literal text: no file or built-in rubric has that name; the built-in rubrics are %s",
			text.Clip(name, 60), strings.Join(Rubrics(), ", "))
	}
}
