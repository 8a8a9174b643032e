package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/pattern"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
)

// File checks which files the workspace contains, and their content.
var File = grader.KindOf(eval.Kind{
	Name:    "file",
	Aliases: []string{"file_exists"},
	Summary: "Checks the files that the agent left in its workspace. The score is the share of checks met. Passes if all are met.",
}, checkFile, newFile)

// FileOptions holds the options of the file grader. Paths are relative to the workspace and stay
// in it.
type FileOptions struct {
	// Files or directories that must exist: paths, or patterns that match at least one. In a
	// pattern, * and ? match characters of one name, ** matches directories at any depth, [a-z]
	// matches one of these characters, and {a,b} matches either.
	MustExist []string `yaml:"must_exist"`
	// Files or directories that must not exist: paths, or patterns that match none.
	MustNotExist []string `yaml:"must_not_exist"`
	// Syntax of the regular expressions: that of Go (RE2), or that of JavaScript, where flags such as
	// (?i) at the start apply to the whole expression and a search of more than a second is an error.
	Syntax pattern.Syntax `yaml:"syntax" json:",omitempty" jsonschema:"enum=re2,enum=javascript,default=re2"`
	// Patterns that the content of files must match or must not match.
	ContentPatterns []FilePatterns `yaml:"content_patterns"`
	// Only files that the agent created count: not directories, not links, and no files that the
	// workspace contained when the agent started.
	Created bool `yaml:"created" json:",omitempty"`
	// Short for a must_exist with one entry.
	Path string `yaml:"path"`
}

// FilePatterns holds patterns on the content of files.
type FilePatterns struct {
	// File, relative to the workspace, or a pattern like those of must_exist.
	Path string `yaml:"path" jsonschema:"required"`
	// Regular expressions that must match somewhere in the file or, if path is a pattern, in at least
	// one of the files.
	MustMatch []string `yaml:"must_match"`
	// Regular expressions that must not match anywhere in the file or, if path is a pattern, in any of
	// the files, if there are some.
	MustNotMatch []string `yaml:"must_not_match"`
}

func checkFile(c *eval.Check, o *FileOptions) {
	for i, p := range o.MustExist {
		checkPattern(c, decode.At("must_exist", i), p)
	}
	for i, p := range o.MustNotExist {
		checkPattern(c, decode.At("must_not_exist", i), p)
	}
	if c.Has(decode.At("path")) {
		checkPattern(c, decode.At("path"), o.Path)
	}
	for i, p := range o.ContentPatterns {
		checkPattern(c, decode.At("content_patterns", i, "path"), p.Path)
		for j, pattern := range p.MustMatch {
			c.Pattern(decode.At("content_patterns", i, "must_match", j), o.Syntax, pattern)
		}
		for j, pattern := range p.MustNotMatch {
			c.Pattern(decode.At("content_patterns", i, "must_not_match", j), o.Syntax, pattern)
		}
		if len(p.MustMatch)+len(p.MustNotMatch) == 0 {
			c.Errorf(decode.At("content_patterns", i), decode.CodeChecksNothing,
				"content_patterns[%d] has nothing to check: give must_match or must_not_match, or put the path into must_exist", i)
		}
	}
	if len(o.MustExist)+len(o.MustNotExist)+len(o.ContentPatterns) == 0 && o.Path == "" {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give must_exist, must_not_exist or content_patterns")
	}
}

func newFile(o *FileOptions, _ *grader.Env) (grader.Grader, error) {
	g := &fileGrader{created: o.Created}
	mustExist := o.MustExist
	if o.Path != "" {
		mustExist = append([]string{o.Path}, o.MustExist...)
	}
	var err error
	if g.mustExist, err = pathPatterns("must_exist", mustExist); err != nil {
		return nil, err
	}
	if g.mustNotExist, err = pathPatterns("must_not_exist", o.MustNotExist); err != nil {
		return nil, err
	}
	for _, p := range o.ContentPatterns {
		at, err := newPathPattern(p.Path)
		if err != nil {
			return nil, fmt.Errorf("content_patterns: %w", err)
		}
		content := fileContent{path: at}
		for _, text := range p.MustMatch {
			re, err := pattern.Compile(o.Syntax, text)
			if err != nil {
				return nil, err
			}
			content.mustMatch = append(content.mustMatch, filePattern{text, re})
		}
		for _, text := range p.MustNotMatch {
			re, err := pattern.Compile(o.Syntax, text)
			if err != nil {
				return nil, err
			}
			content.mustNotMatch = append(content.mustNotMatch, filePattern{text, re})
		}
		g.contents = append(g.contents, content)
	}
	return g, nil
}

func pathPatterns(key string, texts []string) ([]pathPattern, error) {
	patterns := make([]pathPattern, len(texts))
	for i, text := range texts {
		var err error
		if patterns[i], err = newPathPattern(text); err != nil {
			return nil, fmt.Errorf("%s: %w", decode.At(key, i), err)
		}
	}
	return patterns, nil
}

type fileGrader struct {
	mustExist, mustNotExist []pathPattern
	contents                []fileContent
	created                 bool
}

type fileContent struct {
	path                    pathPattern
	mustMatch, mustNotMatch []filePattern
}

type filePattern struct {
	text string // as written in the suite
	re   *pattern.Pattern
}

func (g *fileGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	root, err := grader.OpenWorkspace(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer root.Close()
	if err := g.lost(s); err != nil {
		return grader.Score{}, err
	}
	var given func(path string) bool
	if g.created {
		if given, err = s.GivenFiles(); err != nil {
			return grader.Score{}, err
		}
	}
	var t grader.Checklist
	for i := range g.mustExist {
		p := &g.mustExist[i]
		complaint, err := p.missing(ctx, root, given)
		if err != nil {
			return grader.Score{}, err
		}
		t.Add("must_exist "+p.text, complaint)
	}
	for i := range g.mustNotExist {
		p := &g.mustNotExist[i]
		complaint, err := p.present(ctx, root, given)
		if err != nil {
			return grader.Score{}, err
		}
		t.Add("must_not_exist "+p.text, complaint)
	}
	for _, c := range g.contents {
		if err := c.grade(ctx, root, given, &t); err != nil {
			return grader.Score{}, err
		}
	}
	return t.Score(), nil
}

// lost returns an error if anything that the grader looks at is no longer known.
func (g *fileGrader) lost(s *grader.Subject) error {
	for _, p := range slices.Concat(g.mustExist, g.mustNotExist) {
		if err := p.lost(s); err != nil {
			return err
		}
	}
	for _, c := range g.contents {
		if err := c.path.lost(s); err != nil {
			return err
		}
	}
	return nil
}

// missing returns a complaint if nothing matches the pattern, or "".
func (p *pathPattern) missing(ctx context.Context, root *os.Root, given func(string) bool) (complaint string, err error) {
	found, err := p.find(ctx, root, matching{follow: true, given: given})
	switch {
	case errors.Is(err, grader.ErrEscapes):
		return fmt.Sprintf("%s does not count: %s", p.text, grader.ErrEscapes), nil
	case err != nil:
		return "", fmt.Errorf("%s: %w", p.text, err)
	case found == "" && given != nil:
		return "the agent created no file " + p.text, nil
	case found == "" && p.glob != nil:
		return "no file or directory matches " + p.text, nil
	case found == "":
		return fmt.Sprintf("%s does not exist", p.text), nil
	}
	return "", nil
}

// present returns a complaint if something matches the pattern, or "".
func (p *pathPattern) present(ctx context.Context, root *os.Root, given func(string) bool) (complaint string, err error) {
	found, err := p.find(ctx, root, matching{given: given})
	switch {
	case errors.Is(err, grader.ErrEscapes):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("%s: %w", p.text, err)
	case found != "" && found != p.text:
		return fmt.Sprintf("%s exists, but it matches the forbidden pattern %s", found, p.text), nil
	case found != "":
		return fmt.Sprintf("%s exists, which is forbidden", found), nil
	}
	return "", nil
}

// grade adds one check for each pattern. A file that cannot be read meets no check, not even
// those on forbidden content, because a missing file proves nothing.
func (c *fileContent) grade(ctx context.Context, root *os.Root, given func(string) bool, t *grader.Checklist) error {
	if c.path.glob != nil {
		return c.gradeAll(ctx, root, given, t)
	}
	name := c.path.text
	data, unreadable, err := readForChecks(root, name)
	if err != nil {
		return err
	}
	if m := (matching{given: given}); unreadable == "" && !m.counts(root, name) {
		unreadable = "the agent did not create " + name
	}
	for _, p := range c.mustMatch {
		complaint := unreadable
		if complaint == "" {
			if complaint, err = p.missingIn(name, data); err != nil {
				return err
			}
		}
		t.Add(fmt.Sprintf("%s matches %s", name, p.text), complaint)
	}
	for _, p := range c.mustNotMatch {
		complaint := unreadable
		if complaint == "" {
			if complaint, err = p.presentIn(name, data); err != nil {
				return err
			}
		}
		t.Add(fmt.Sprintf("%s does not match %s", name, p.text), complaint)
	}
	return nil
}

// maxMatchedBytes limits the files that one pattern of paths makes the grader read.
const maxMatchedBytes = 256 << 20

// gradeAll is like grade for a pattern of paths: one file has to contain what must match, and none
// may contain what must not. A file that cannot be read may contain anything.
func (c *fileContent) gradeAll(ctx context.Context, root *os.Root, given func(string) bool, t *grader.Checklist) error {
	missing, present := make([]string, len(c.mustMatch)), make([]string, len(c.mustNotMatch))
	for i := range missing {
		missing[i] = "no file matches " + c.path.text
	}
	found := make([]bool, len(c.mustMatch))
	var fault error
	total := 0
	one := func(name string) error {
		data, unreadable, err := readForChecks(root, name)
		if err != nil {
			return err
		}
		if total += len(data); total > maxMatchedBytes {
			return fmt.Errorf("%s: the files have more than %d MiB", c.path.text, maxMatchedBytes>>20)
		}
		for i, p := range c.mustMatch {
			if found[i] {
				continue
			}
			if missing[i] = unreadable; unreadable == "" {
				if missing[i], err = p.missingIn(name, data); err != nil {
					return err
				}
			}
			found[i] = missing[i] == ""
		}
		for i, p := range c.mustNotMatch {
			if present[i] != "" {
				continue
			}
			if present[i] = unreadable; unreadable == "" {
				if present[i], err = p.presentIn(name, data); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := c.path.each(ctx, root, matching{follow: true, files: true, given: given}, func(name string) bool {
		fault = one(name)
		return fault == nil
	})
	if err := cmp.Or(fault, err); err != nil {
		return err
	}
	for i, p := range c.mustMatch {
		t.Add(fmt.Sprintf("a file %s matches %s", c.path.text, p.text), missing[i])
	}
	for i, p := range c.mustNotMatch {
		t.Add(fmt.Sprintf("no file %s matches %s", c.path.text, p.text), present[i])
	}
	return nil
}

// missingIn returns a complaint if a file does not match the pattern, or "".
func (p *filePattern) missingIn(name string, data []byte) (complaint string, err error) {
	_, found, err := p.re.Find(string(data))
	switch {
	case err != nil:
		return "", executor.Permanent(fmt.Errorf("%s: %w", name, err))
	case !found:
		return fmt.Sprintf("%s does not match /%s/; it starts with %s", name,
			text.Clip(p.text, grader.ExcerptBytes), grader.Excerpt(string(data))), nil
	}
	return "", nil
}

// presentIn returns a complaint if a file matches the forbidden pattern, or "".
func (p *filePattern) presentIn(name string, data []byte) (complaint string, err error) {
	m, found, err := p.re.Find(string(data))
	switch {
	case err != nil:
		return "", executor.Permanent(fmt.Errorf("%s: %w", name, err))
	case found:
		return fmt.Sprintf("%s matches /%s/, which is forbidden: %s", name,
			text.Clip(p.text, grader.ExcerptBytes), grader.Excerpt(m)), nil
	}
	return "", nil
}

// readForChecks reads a file of the workspace. complaint says why the agent's file cannot be read;
// err is a fault of the machine.
func readForChecks(root *os.Root, path string) (data []byte, complaint string, err error) {
	data, err = grader.ReadFile(root, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, path + " does not exist", nil
	case errors.Is(err, fs.ErrPermission):
		return nil, "", fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return nil, fmt.Sprintf("cannot read %s: %s", path, err), nil
	}
	return data, "", nil
}
