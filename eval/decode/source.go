package decode

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ErrNotText means that a file is refused because of its content.
var ErrNotText = errors.New("not plain UTF-8 text")

// A Source is a file in which findings are located.
type Source struct {
	Path  string     // absolute
	Name  string     // in findings
	Text  string     // UTF-8 without byte order mark
	lines []int      // offset of the start of each line in Text
	Root  *yaml.Node // nil when Text cannot be parsed
}

// NewSource returns the source of a text without parsing it. path is absolute; name is the
// file's name in findings.
func NewSource(path, name, text string) *Source {
	s := &Source{Path: path, Name: name, Text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// line returns the text of a line, counted from 1, without its end; "" when the line does not
// exist.
func (s *Source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.Text)
	if n < len(s.lines) {
		end = s.lines[n] - 1
	}
	return strings.TrimSuffix(s.Text[s.lines[n-1]:end], "\r")
}

// Position returns the line and the column of an offset. Both start at 1; the column is in
// characters.
func (s *Source) Position(offset int) (line, column int) {
	line, _ = slices.BinarySearch(s.lines, offset+1) // the lines that start at the offset or before
	return line, utf8.RuneCountInString(s.Text[s.lines[line-1]:min(offset, len(s.Text))]) + 1
}

// Diagnostic returns a finding about a node; a nil node means the whole file.
func (s *Source) Diagnostic(n *yaml.Node, severity Severity, code Code, message string) Diagnostic {
	d := Diagnostic{File: s.Name, Severity: severity, Code: code, Message: message}
	if n == nil || n.Line == 0 {
		return d
	}
	d.Line, d.Column = n.Line, n.Column
	d.EndColumn = s.endColumn(n)
	return d
}

// endColumn returns the end of a scalar that is on one line, else 0.
func (s *Source) endColumn(n *yaml.Node) int {
	if raw := s.written(n); raw != "" {
		return n.Column + utf8.RuneCountInString(raw)
	}
	return 0
}

// written returns a scalar that is on one line as the text has it, else "". The library only
// reports where a node starts.
func (s *Source) written(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		return "*" + n.Value
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" && n.Style == 0 {
		return ""
	}
	rest, ok := skipRunes(s.line(n.Line), n.Column-1)
	if !ok {
		return ""
	}
	length := 0
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		length = quotedLength(rest, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		length = quotedLength(rest, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.HasPrefix(rest, n.Value):
		length = len(n.Value)
	}
	return rest[:length]
}

func skipRunes(s string, n int) (string, bool) {
	for ; n > 0; n-- {
		if s == "" {
			return "", false
		}
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	return s, true
}

// quotedLength returns the length of the quoted text at the start of s, including quotes; 0 when
// it does not end in s.
func quotedLength(s string, quote byte) int {
	if s == "" || s[0] != quote {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote == '"':
			i++
		case s[i] == quote && quote == '\'' && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return 0
}

// PlainText removes a byte order mark and converts UTF-16, which some Windows shells write, to
// UTF-8. Data that is not text gives an error with its offset. NUL is not text; with strict,
// which YAML needs, no control character is.
func PlainText(data []byte, strict bool) (text string, offset int, err error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xFF\xFE")):
		data = fromUTF16(data[2:], 1)
	case bytes.HasPrefix(data, []byte("\xFE\xFF")):
		data = fromUTF16(data[2:], 0)
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return string(data), i, fmt.Errorf("%w: byte %#02x", ErrNotText, data[i])
		}
		if r == 0 || strict && (r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7F) {
			return string(data), i, fmt.Errorf("%w: control character %#02x", ErrNotText, r)
		}
		i += size
	}
	return string(data), 0, nil
}

// newText returns the source of a file that a parser reads next. It reports a file that is not text
// or has more than most keys and items, and returns false. See [PlainText] for strict.
func newText(path, name string, data []byte, strict bool, most int, to *Findings) (src *Source, ok bool) {
	text, offset, err := PlainText(data, strict)
	src = NewSource(path, name, text)
	switch {
	case err != nil:
		line, column := src.Position(offset)
		to.Report(Diagnostic{File: src.Name, Line: line, Column: column, Severity: Error, Code: CodeNotText, Message: err.Error()})
	case Large(text, most):
		to.Reportf(src, nil, Error, CodeTooLarge, "more than %d keys and items", most)
	default:
		return src, true
	}
	return src, false
}

func fromUTF16(data []byte, high int) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = uint16(data[2*i+high])<<8 | uint16(data[2*i+1-high])
	}
	return []byte(string(utf16.Decode(units)))
}

// Locate moves a finding to the first occurrence of text after the start of a node.
func (s *Source) Locate(d *Diagnostic, at *yaml.Node, text string) {
	from := 0
	if at != nil && at.Line > 0 && at.Line <= len(s.lines) {
		from = s.lines[at.Line-1]
	}
	if i := strings.Index(s.Text[from:], text); i >= 0 {
		d.Line, d.Column = s.Position(from + i)
		d.EndColumn = d.Column + len([]rune(text))
	}
}
