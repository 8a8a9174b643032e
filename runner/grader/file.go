package grader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"

	"waza/eval"
)

var file = kindOf(eval.Kind{
	Name:    "file",
	Aliases: []string{"file_exists"},
	Summary: "Looks at the files the agent left in its workspace. The score is the share of checks met; all must be.",
}, checkFile, newFile)

// FileOptions are the options of the file grader. Paths are relative to the
// workspace and stay in it.
type FileOptions struct {
	// Files or directories that must be there.
	MustExist []string `yaml:"must_exist"`
	// Files or directories that must not be there.
	MustNotExist []string `yaml:"must_not_exist"`
	// What files must, and must not, contain.
	ContentPatterns []FilePatterns `yaml:"content_patterns"`
	// Short for a must_exist of one path.
	Path string `yaml:"path"`
}

// FilePatterns are patterns on the content of one file.
type FilePatterns struct {
	// File, relative to the workspace.
	Path string `yaml:"path" jsonschema:"required"`
	// Regular expressions (RE2) that must match somewhere in the file.
	MustMatch []string `yaml:"must_match"`
	// Regular expressions (RE2) that must not match anywhere in the file.
	MustNotMatch []string `yaml:"must_not_match"`
}

func checkFile(c *eval.Check, o *FileOptions) {
	for i, p := range o.MustExist {
		checkLocal(c, eval.At("must_exist", i), p)
	}
	for i, p := range o.MustNotExist {
		checkLocal(c, eval.At("must_not_exist", i), p)
	}
	if c.Has(eval.At("path")) {
		checkLocal(c, eval.At("path"), o.Path)
	}
	for i, p := range o.ContentPatterns {
		checkLocal(c, eval.At("content_patterns", i, "path"), p.Path)
		for j, pattern := range p.MustMatch {
			c.Regexp(eval.At("content_patterns", i, "must_match", j), pattern)
		}
		for j, pattern := range p.MustNotMatch {
			c.Regexp(eval.At("content_patterns", i, "must_not_match", j), pattern)
		}
		if len(p.MustMatch)+len(p.MustNotMatch) == 0 {
			c.Errorf(eval.At("content_patterns", i), eval.CodeChecksNothing,
				"content_patterns[%d] has nothing to check: give must_match or must_not_match, or put the path into must_exist", i)
		}
	}
	if len(o.MustExist)+len(o.MustNotExist)+len(o.ContentPatterns) == 0 && o.Path == "" {
		c.Errorf(eval.At(), eval.CodeChecksNothing, "nothing to check: give must_exist, must_not_exist or content_patterns")
	}
}

func newFile(o *FileOptions, _ *Env) (Grader, error) {
	g := &fileGrader{mustExist: o.MustExist, mustNotExist: o.MustNotExist}
	if o.Path != "" {
		g.mustExist = append([]string{o.Path}, o.MustExist...)
	}
	for _, p := range o.ContentPatterns {
		content := fileContent{path: p.Path}
		for _, pattern := range p.MustMatch {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil, err
			}
			content.mustMatch = append(content.mustMatch, re)
		}
		for _, pattern := range p.MustNotMatch {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil, err
			}
			content.mustNotMatch = append(content.mustNotMatch, re)
		}
		g.contents = append(g.contents, content)
	}
	return g, nil
}

type fileGrader struct {
	mustExist, mustNotExist []string
	contents                []fileContent
}

type fileContent struct {
	path                    string
	mustMatch, mustNotMatch []*regexp.Regexp
}

func (g *fileGrader) Grade(_ context.Context, s *Subject) (Score, error) {
	root, err := openWorkspace(s)
	if err != nil {
		return Score{}, err
	}
	defer root.Close()
	for _, path := range g.paths() {
		if err := s.lost(path); err != nil {
			return Score{}, err
		}
	}
	var t tally
	for _, path := range g.mustExist {
		complaint, err := missing(root, path)
		if err != nil {
			return Score{}, err
		}
		t.add("must_exist "+path, complaint)
	}
	for _, path := range g.mustNotExist {
		complaint := ""
		found, err := exists(root, path, false)
		switch {
		case err != nil && !errors.Is(err, errEscapes):
			return Score{}, fmt.Errorf("%s: %w", path, err)
		case found:
			complaint = fmt.Sprintf("%s exists, which it must not", path)
		}
		t.add("must_not_exist "+path, complaint)
	}
	for _, c := range g.contents {
		if err := c.grade(root, &t); err != nil {
			return Score{}, err
		}
	}
	return t.score(), nil
}

// paths are all that the grader looks at.
func (g *fileGrader) paths() []string {
	paths := slices.Concat(g.mustExist, g.mustNotExist)
	for _, c := range g.contents {
		paths = append(paths, c.path)
	}
	return paths
}

// missing says why there is nothing at path, or nothing.
func missing(root *os.Root, path string) (complaint string, err error) {
	found, err := exists(root, path, true)
	switch {
	case errors.Is(err, errEscapes):
		return fmt.Sprintf("%s does not count: %s", path, errEscapes), nil
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, err)
	case !found:
		return fmt.Sprintf("%s does not exist", path), nil
	}
	return "", nil
}

// grade adds one check for each pattern. A file that cannot be read meets none,
// those on what it must not contain included: an absent file proves nothing.
func (c *fileContent) grade(root *os.Root, t *tally) error {
	data, err := readFile(root, c.path)
	unreadable := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		unreadable = c.path + " does not exist"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w", c.path, err)
	case err != nil:
		unreadable = fmt.Sprintf("%s cannot be read: %s", c.path, err)
	}
	for _, re := range c.mustMatch {
		complaint := unreadable
		if complaint == "" && !re.Match(data) {
			complaint = fmt.Sprintf("%s does not match /%s/; it begins %s", c.path, clip(re.String(), excerptBytes), excerpt(string(data)))
		}
		t.add(fmt.Sprintf("%s matches %s", c.path, re), complaint)
	}
	for _, re := range c.mustNotMatch {
		complaint := unreadable
		if complaint == "" {
			if m := re.FindIndex(data); m != nil {
				complaint = fmt.Sprintf("%s matches /%s/, which it must not: %s", c.path, clip(re.String(), excerptBytes), excerpt(string(data[m[0]:m[1]])))
			}
		}
		t.add(fmt.Sprintf("%s does not match %s", c.path, re), complaint)
	}
	return nil
}
