package skill

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// lineWidth is the maximum line width of a description, in bytes.
const lineWidth = 88

// WithDescription returns the content of a SKILL.md with a new description; the rest is
// unchanged, byte for byte. Runs of white space in the description become single spaces. The
// error means that the frontmatter does not have one key per line, or cannot be used at all.
func WithDescription(data []byte, description string) ([]byte, error) {
	s := Parse("", data)
	if s.Problem != nil {
		return nil, s.Problem
	}
	words := strings.Fields(description)
	if len(words) == 0 {
		return nil, errors.New("the description is empty")
	}
	if s.Head.Style&yaml.FlowStyle != 0 {
		return nil, errors.New("the frontmatter must have one key per line")
	}
	lines := strings.Split(s.Text, "\n")
	from, to := len(strings.Split(s.HeadText, "\n")), 0 // line indexes
	to = from
	for i := 0; i+1 < len(s.Head.Content); i += 2 {
		if s.Head.Content[i].Value != "description" {
			continue
		}
		from, to = s.Head.Content[i].Line, len(strings.Split(s.HeadText, "\n"))
		if i+2 < len(s.Head.Content) {
			to = s.Head.Content[i+2].Line
		}
	}
	for to > from+1 && (strings.TrimSpace(lines[to-1]) == "" || strings.HasPrefix(lines[to-1], "#")) {
		to-- // comments of the next key
	}
	changed := append(append(append([]string{}, lines[:from]...), foldWords(words)...), lines[to:]...)
	out := []byte(strings.Join(changed, "\n"))
	if err := s.checkChange(out, strings.Join(words, " ")); err != nil {
		return nil, err
	}
	if bytes.Contains(data, []byte("\r\n")) {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	if bom := []byte("\uFEFF"); bytes.HasPrefix(data, bom) {
		out = append(bom, out...)
	}
	return out, nil
}

// foldWords returns words as a block that YAML folds into one line.
func foldWords(words []string) []string {
	out := []string{"description: >-"}
	line := " "
	for _, w := range words {
		if len(line) > 1 && len(line)+1+len(w) > lineWidth {
			out = append(out, line)
			line = " "
		}
		line += " " + w
	}
	return append(out, line)
}

// checkChange checks that a changed text parses to the same skill with the new description.
func (s *Skill) checkChange(changed []byte, description string) error {
	n := Parse("", changed)
	switch {
	case n.Problem != nil:
		return fmt.Errorf("with the description, %w", n.Problem)
	case n.Description != description || n.Name != s.Name || n.Body != s.Body:
		return errors.New("the description cannot be written into this frontmatter")
	}
	for _, key := range s.Keys() {
		if key != "description" && n.Value(key) == nil && s.Value(key) != nil {
			return fmt.Errorf("the key %s would be lost", key)
		}
	}
	return nil
}
