// Package skill reads SKILL.md files, and the places of their parts. Call [Read] for a file or
// its directory, [Parse] for a text, and [Find] or [Below] to find skills.
package skill

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
)

// FileName is the name of the file that makes a directory a skill.
const FileName = "SKILL.md"

// Keys are the keys of the frontmatter in the Agent Skills specification.
var Keys = []string{"name", "description", "license", "allowed-tools", "metadata", "compatibility"}

// MaxBytes is the size limit of a SKILL.md in bytes.
const MaxBytes = 1 << 20

// maxHead limits the keys and items of the frontmatter.
const maxHead = 100_000

// AgentSuffix is how the names of files end that define agents. They have the form of a SKILL.md.
const AgentSuffix = ".agent.md"

// A Skill is a SKILL.md: YAML between two lines of three dashes, then Markdown. It is immutable
// after [Parse] and safe for concurrent use.
type Skill struct {
	// File is the path of the file; Dir is its directory. Both are empty for a parsed text
	// without a file.
	File, Dir string
	// Name and Description are from the frontmatter; empty if they are absent or not scalars.
	Name, Description string
	// Head is the mapping of the frontmatter; nil if that is unusable. Its lines count from the
	// line after the dashes; [Skill.Line] counts from the start of the file.
	Head *yaml.Node
	// Problem is why the frontmatter cannot be used: it is missing, has no end or is not a YAML
	// mapping. Nil if it is valid.
	Problem error
	// ProblemLine is the line of Problem, counted from 1.
	ProblemLine int
	// Fault is the position of Problem in its line and, if one is known, the replacement that
	// corrects it. It is zero unless the frontmatter has a syntax fault.
	Fault decode.Diagnostic
	// Text is the whole file as UTF-8 with \n at the ends of lines.
	Text string
	// HeadText is the YAML between the dashes. Body is the rest of the text, from line BodyLine,
	// counted from 1.
	HeadText, Body string
	BodyLine       int
}

// Title returns the name of the skill, or else of its directory.
func (s *Skill) Title() string { return cmp.Or(s.Name, filepath.Base(s.Dir)) }

// ErrNoHead is the [Skill.Problem] of a file that does not start with three dashes.
var ErrNoHead = errors.New("the file does not start with frontmatter (a line of ---)")

// Read reads a SKILL.md, or the one in the directory at path. Errors contain the path. A faulty
// frontmatter is not an error but the [Skill.Problem].
func Read(path string) (*Skill, error) {
	file := path
	if files.IsDir(path) {
		file = filepath.Join(path, FileName)
	}
	data, err := files.Read(file, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", file, files.Reason(err))
	}
	return Parse(file, data), nil
}

// Parse parses the content of a SKILL.md. file is its path, which may be empty; Parse does not
// read it.
func Parse(file string, data []byte) *Skill {
	s := &Skill{File: file, Text: normalize(data), BodyLine: 1}
	if file != "" {
		s.Dir = filepath.Dir(file)
	}
	s.Body = s.Text
	first, rest, _ := strings.Cut(s.Text, "\n")
	if !isDashes(first) {
		s.Problem, s.ProblemLine = ErrNoHead, 1
		return s
	}
	line := 2
	for left := rest; left != ""; line++ {
		text, after, _ := strings.Cut(left, "\n")
		if isDashes(text) {
			s.HeadText, s.Body, s.BodyLine = rest[:len(rest)-len(left)], after, line+1
			s.parseHead()
			return s
		}
		left = after
	}
	s.Problem, s.ProblemLine = errors.New("the frontmatter has no end; add a second line of ---"), 1
	return s
}

// normalize normalizes a text: no byte order mark, valid UTF-8, lines that end in \n.
func normalize(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

func isDashes(line string) bool { return strings.TrimRight(line, " \t") == "---" }

func (s *Skill) parseHead() {
	fail := func(err error) { s.Problem, s.ProblemLine = err, 2 }
	if decode.Large(s.HeadText, maxHead) {
		fail(errors.New("the frontmatter is too large"))
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s.HeadText), &doc); err != nil {
		s.Fault = decode.SyntaxFault(s.HeadText, err)
		s.Fault.Line++ // the line of dashes
		s.Problem, s.ProblemLine = fmt.Errorf("the frontmatter is not valid YAML: %s", s.Fault.Message), s.Fault.Line
		return
	}
	if len(doc.Content) == 0 {
		fail(errors.New("the frontmatter is empty"))
		return
	}
	decode.NewSource("", "", s.HeadText).Place(&doc)
	head := decode.Follow(doc.Content[0])
	if head == nil || head.Kind != yaml.MappingNode {
		fail(fmt.Errorf("the frontmatter must be a mapping of keys, got %s", decode.Describe(doc.Content[0])))
		return
	}
	s.Head = head
	s.Name, _ = s.Scalar("name")
	s.Description, _ = s.Scalar("description")
}

// Value returns the node of a key of the frontmatter, with aliases followed; nil if absent.
func (s *Skill) Value(key string) *yaml.Node {
	if s.Head == nil {
		return nil
	}
	return decode.Follow(decode.Lookup(s.Head, key))
}

// Scalar returns the text of a key of the frontmatter. ok is false if the key is absent, a list,
// a mapping or null.
func (s *Skill) Scalar(key string) (text string, ok bool) {
	n := s.Value(key)
	if n == nil || n.Kind != yaml.ScalarNode || decode.IsNull(n) {
		return "", false
	}
	return n.Value, true
}

// Keys returns the keys of the frontmatter in order.
func (s *Skill) Keys() []string {
	if s.Head == nil {
		return nil
	}
	var keys []string
	for i := 0; i+1 < len(s.Head.Content); i += 2 {
		keys = append(keys, s.Head.Content[i].Value)
	}
	return keys
}

// Line returns the line of a key of the frontmatter in the file, counted from 1. For an absent
// key it is the line of the first dashes.
func (s *Skill) Line(key string) int {
	if s.Head == nil {
		return max(s.ProblemLine, 1)
	}
	if k, _ := decode.LookupPair(s.Head, key); k != nil {
		return k.Line + 1
	}
	return 1
}
