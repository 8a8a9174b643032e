package eval

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"waza/eval/files"
)

// MaxTextBytes is the largest file of YAML, or prompt, that is read. A file of
// which an editor holds more is not worth following.
const MaxTextBytes = 8 << 20

// MaxFixtureBytes is the largest file that is put into a workspace, and
// maxTaskFixtures bounds all files of one task. Every trial copies them.
const (
	MaxFixtureBytes = 1 << 30
	maxTaskFixtures = 4 << 30
)

// The largest files that are read. A file is refused by its size before its
// first byte is.
const (
	maxYAMLBytes    = MaxTextBytes
	maxPromptBytes  = MaxTextBytes
	maxDatasetBytes = 64 << 20
)

// errNotText says that a file is refused for what it holds.
var errNotText = errors.New("not plain UTF-8 text")

// source is a file that findings are located in.
type source struct {
	path  string // absolute
	name  string // as findings show it
	text  string // UTF-8 without byte order mark
	lines []int  // offset of the begin of each line in text
	root  *yaml.Node
}

func newSource(path, name, text string) *source {
	s := &source{path: path, name: name, text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// line returns the text of a line counted from 1, without its end; "" when
// there is no such line.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.text)
	if n < len(s.lines) {
		end = s.lines[n] - 1
	}
	return strings.TrimSuffix(s.text[s.lines[n-1]:end], "\r")
}

// position turns an offset into a line and a column, both from 1, the column in
// characters.
func (s *source) position(offset int) (line, column int) {
	lo, hi := 0, len(s.lines)
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if s.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1, utf8.RuneCountInString(s.text[s.lines[lo]:min(offset, len(s.text))]) + 1
}

// diagnostic makes a finding about a node; a nil node means the whole file.
func (s *source) diagnostic(n *yaml.Node, severity Severity, code Code, message string) Diagnostic {
	d := Diagnostic{File: s.name, Severity: severity, Code: code, Message: message}
	if n == nil || n.Line == 0 {
		return d
	}
	d.Line, d.Column = n.Line, n.Column
	d.EndColumn = s.endColumn(n)
	return d
}

// endColumn finds where a scalar that stands on one line ends, 0 when it does
// not. The library tells only where a node begins.
func (s *source) endColumn(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return n.Column + 1 + utf8.RuneCountInString(n.Value)
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" && n.Style == 0 {
		return 0
	}
	rest, ok := skipRunes(s.line(n.Line), n.Column-1)
	if !ok {
		return 0
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
	if length == 0 {
		return 0
	}
	return n.Column + utf8.RuneCountInString(rest[:length])
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

// quotedLength returns the length of the quoted text that s begins with, quotes
// included; 0 when it does not end in s.
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

// readFile returns the content of a file of the suite of at most limit bytes, or of
// the editor's unsaved copy of it. See [Suite.Open] for what is refused.
func (l *loader) readFile(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, l.suite.ReadFile)
}

// readSkill is readFile for a file of a skill.
func (l *loader) readSkill(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, l.suite.ReadSkill)
}

// readNear is readFile for a file above the suite, which no link may lead out of its
// directory.
func (l *loader) readNear(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, func(path string, limit int64) ([]byte, error) {
		if within(l.root(), path) {
			return l.suite.ReadFile(path, limit)
		}
		f, err := openWithin(filepath.Dir(path), "its directory", path)
		return readAndClose(f, err, limit)
	})
}

func (l *loader) read(path string, limit int64, read func(path string, limit int64) ([]byte, error)) ([]byte, error) {
	l.looked(path)
	if data, ok := l.options.Overlay[path]; ok {
		return data, files.CheckBytes(int64(len(data)), limit)
	}
	return read(path, limit)
}

// plainText takes a byte order mark away and turns UTF-16, which some Windows
// shells write, into UTF-8. What is not text is an error with its offset: NUL, and
// when strict, as YAML is, all control characters.
func plainText(data []byte, strict bool) (text string, offset int, err error) {
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
			return string(data), i, fmt.Errorf("%w: byte %#02x", errNotText, data[i])
		}
		if r == 0 || strict && (r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7F) {
			return string(data), i, fmt.Errorf("%w: control character %#02x", errNotText, r)
		}
		i += size
	}
	return string(data), 0, nil
}

func fromUTF16(data []byte, high int) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = uint16(data[2*i+high])<<8 | uint16(data[2*i+1-high])
	}
	return []byte(string(utf16.Decode(units)))
}

// display gives an absolute path as the caller of Load would write it: relative
// to where the caller said the suite is.
func (l *loader) display(abs string) string {
	rel, err := filepath.Rel(l.suite.Dir, abs)
	if err != nil {
		return filepath.ToSlash(abs)
	}
	return filepath.ToSlash(filepath.Join(l.shownDir, rel))
}
