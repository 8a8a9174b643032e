package output

import (
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
	// Short for a must_exist with one entry.
	Path string `yaml:"path"`
}

// FilePatterns holds patterns on the content of one file.
type FilePatterns struct {
	// File, relative to the workspace.
	Path string `yaml:"path" jsonschema:"required"`
	// Regular expressions that must match somewhere in the file.
	MustMatch []string `yaml:"must_match"`
	// Regular expressions that must not match anywhere in the file.
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
		grader.CheckLocal(c, decode.At("content_patterns", i, "path"), p.Path)
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
	g := &fileGrader{}
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
		content := fileContent{path: p.Path}
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
}

type fileContent struct {
	path                    string
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
	var t grader.Checklist
	for i := range g.mustExist {
		p := &g.mustExist[i]
		complaint, err := p.missing(ctx, root)
		if err != nil {
			return grader.Score{}, err
		}
		t.Add("must_exist "+p.text, complaint)
	}
	for i := range g.mustNotExist {
		p := &g.mustNotExist[i]
		complaint, err := p.present(ctx, root)
		if err != nil {
			return grader.Score{}, err
		}
		t.Add("must_not_exist "+p.text, complaint)
	}
	for _, c := range g.contents {
		if err := c.grade(root, &t); err != nil {
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
		if err := s.MissingAt(c.path); err != nil {
			return err
		}
	}
	return nil
}

// missing returns a complaint if nothing matches the pattern, or "".
func (p *pathPattern) missing(ctx context.Context, root *os.Root) (complaint string, err error) {
	found, err := p.find(ctx, root, true)
	switch {
	case errors.Is(err, grader.ErrEscapes):
		return fmt.Sprintf("%s does not count: %s", p.text, grader.ErrEscapes), nil
	case err != nil:
		return "", fmt.Errorf("%s: %w", p.text, err)
	case found == "" && p.glob != nil:
		return "no file or directory matches " + p.text, nil
	case found == "":
		return fmt.Sprintf("%s does not exist", p.text), nil
	}
	return "", nil
}

// present returns a complaint if something matches the pattern, or "".
func (p *pathPattern) present(ctx context.Context, root *os.Root) (complaint string, err error) {
	found, err := p.find(ctx, root, false)
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
func (c *fileContent) grade(root *os.Root, t *grader.Checklist) error {
	data, unreadable, err := readForChecks(root, c.path)
	if err != nil {
		return err
	}
	for _, p := range c.mustMatch {
		complaint := unreadable
		if complaint == "" {
			_, found, err := p.re.Find(string(data))
			if err != nil {
				return executor.Permanent(fmt.Errorf("%s: %w", c.path, err))
			}
			if !found {
				complaint = fmt.Sprintf("%s does not match /%s/; it starts with %s", c.path,
					text.Clip(p.text, grader.ExcerptBytes), grader.Excerpt(string(data)))
			}
		}
		t.Add(fmt.Sprintf("%s matches %s", c.path, p.text), complaint)
	}
	for _, p := range c.mustNotMatch {
		complaint := unreadable
		if complaint == "" {
			m, found, err := p.re.Find(string(data))
			if err != nil {
				return executor.Permanent(fmt.Errorf("%s: %w", c.path, err))
			}
			if found {
				complaint = fmt.Sprintf("%s matches /%s/, which is forbidden: %s", c.path,
					text.Clip(p.text, grader.ExcerptBytes), grader.Excerpt(m))
			}
		}
		t.Add(fmt.Sprintf("%s does not match %s", c.path, p.text), complaint)
	}
	return nil
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
