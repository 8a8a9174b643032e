package decode

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

var yamlErrorLine = text.Pattern(`^line (\d+): `)

// maxLocated limits the texts that are parsed again to find the line of a fault.
const maxLocated = 256 << 10

// SyntaxFault returns the fault of a YAML text that err, an error of the parser, describes: its
// position, its message with a hint about the remedy, and a replacement if one is known.
func SyntaxFault(content string, err error) Diagnostic {
	return NewSource("", "", content).syntaxError(err)
}

// syntaxError converts an error of the parser to a finding with a hint.
func (s *Source) syntaxError(err error) Diagnostic {
	msg, line := splitError(err)
	d := Diagnostic{File: s.Name, Severity: Error, Code: CodeSyntax, Message: msg}
	if name, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		if i := strings.Index(s.Text, "*"+name); i >= 0 {
			d.Line, d.Column = s.Position(i)
			d.EndColumn = d.Column + 1 + utf8.RuneCountInString(name)
			d.Message += fmt.Sprintf("; define it with &%s, or quote a text that starts with *", text.Clip(name, 40))
			return d
		}
	}
	if at := s.lineOfFault(err); at > 0 {
		line = at
	}
	s.mark(&d, s.filled(max(1, min(line, len(s.lines)))))
	for _, hint := range []func(*Diagnostic) bool{s.hintTab, s.hintQuestion, s.hintOpen, s.hintColon, s.hintKey, s.hintCharacter, s.hintBlock} {
		if hint(&d) {
			break
		}
	}
	return d
}

// splitError returns the message and the line of an error of the parser. The parser counts lines
// from 0 in its own faults, but from 1 in those of its scanner.
func splitError(err error) (msg string, line int) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlErrorLine().FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
		if strings.HasPrefix(msg, "did not find expected") || strings.Contains(msg, "duplicate %") {
			line++
		}
	}
	return msg, line
}

// lineOfFault returns the line at which the parser fails; 0 if it is unknown. Errors of the
// parser contain only the line where the surrounding list or map starts.
func (s *Source) lineOfFault(err error) int {
	if len(s.Text) > maxLocated {
		return 0
	}
	n := sort.Search(len(s.lines), func(n int) bool {
		end := len(s.Text)
		if n+1 < len(s.lines) {
			end = s.lines[n+1]
		}
		got := parseAll(s.Text[:end])
		return got != nil && got.Error() == err.Error()
	})
	if n == len(s.lines) {
		return 0
	}
	return n + 1
}

// parseAll returns the first syntax error of a text.
func parseAll(text string) error {
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// filled returns the last line that is not empty, at or before a line.
func (s *Source) filled(line int) int {
	for line > 1 && strings.TrimSpace(s.line(line)) == "" {
		line--
	}
	return line
}

// mark moves a finding to the text of a line.
func (s *Source) mark(d *Diagnostic, line int) {
	text := s.line(line)
	indent := len(indentOf(text))
	d.Line, d.Column = line, indent+1
	d.EndColumn = d.Column + max(1, utf8.RuneCountInString(text[indent:]))
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// hintTab explains tabs in the indentation.
func (s *Source) hintTab(d *Diagnostic) bool {
	if !strings.Contains(d.Message, "tab character") && !strings.Contains(d.Message, "cannot start any token") {
		return false
	}
	for _, line := range []int{d.Line, d.Line + 1} {
		if tab := strings.IndexByte(indentOf(s.line(line)), '\t'); tab >= 0 {
			d.Line, d.Column, d.EndColumn = line, tab+1, tab+2
			d.Message = "the line is indented with a tab; YAML allows only spaces"
			return true
		}
	}
	return false
}

// questionText matches a text between braces or brackets that contains a question mark, with the key before it.
var questionText = text.Pattern(`(?:^|[{\[,])\s*((?:[^"'{}\[\],?#]*: +)?)([^\s"'{}\[\],?#:][^"'{}\[\],?#]*\?[^"'{}\[\],]*?)\s*(?:[,}\]]|$)`)

// hintQuestion explains a question mark in a text between braces or brackets, which the parser takes for the start of
// a key.
func (s *Source) hintQuestion(d *Diagnostic) bool {
	if !strings.Contains(d.Message, "expected ','") {
		return false
	}
	for _, number := range []int{d.Line, d.Line - 1, d.Line + 1} {
		if number < 1 || number > len(s.lines) {
			continue
		}
		line := s.line(number)
		m := questionText().FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		d.Line = number
		d.Column = utf8.RuneCountInString(line[:m[4]]) + 1
		d.EndColumn = d.Column + utf8.RuneCountInString(line[m[4]:m[5]])
		d.Suggestion = quote(line[m[4]:m[5]])
		d.Message += "; quote a text with a question mark between braces or brackets"
		return true
	}
	return false
}

// hintOpen explains texts and brackets that are open at the end of the file.
func (s *Source) hintOpen(d *Diagnostic) bool {
	if !strings.Contains(d.Message, "end of stream") && !strings.Contains(d.Message, "expected ','") &&
		!strings.Contains(d.Message, "node content") && !strings.Contains(d.Message, "expected ':'") {
		return false
	}
	from := s.lines[d.Line-1]
	at := open(s.Text[from:])
	if at < 0 { // a bracket of an earlier line
		from = 0
		if at = open(s.Text); at < 0 || strings.IndexByte("[{", s.Text[at]) < 0 {
			return false
		}
	}
	d.Line, d.Column = s.Position(from + at)
	d.EndColumn = d.Column + 1
	d.Message += fmt.Sprintf("; the %c has no end, perhaps because the file is truncated", s.Text[from+at])
	return true
}

// open returns the offset of the last quote or bracket without an end; -1 if all have one.
func open(text string) int {
	var stack []int
	for i := 0; i < len(text); i++ {
		starts := i == 0 || strings.IndexByte(" \n\t[{,", text[i-1]) >= 0
		switch c := text[i]; {
		case c == '#' && starts:
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case (c == '"' || c == '\'') && starts:
			n := quotedLength(text[i:], c)
			if n == 0 {
				return i
			}
			i += n - 1
		case (c == '[' || c == '{') && (starts || len(stack) > 0):
			stack = append(stack, i)
		case (c == ']' || c == '}') && len(stack) > 0:
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) == 0 {
		return -1
	}
	return stack[len(stack)-1]
}

var (
	pairLine    = text.Pattern(`^(\s*(?:- +)*[^\s:#"'\[{][^:]*: +)(\S.*?)\s*$`)
	keyColon    = text.Pattern(`:(\s|$)`)
	unspacedKey = text.Pattern(`^\s*(?:- +)*[A-Za-z_][\w-]*:[^\s:/]`)
)

// hintColon explains a text with a colon that is not quoted, and a colon without a space.
func (s *Source) hintColon(d *Diagnostic) bool {
	if !strings.Contains(d.Message, "mapping values") {
		return false
	}
	line := s.line(d.Line)
	if m := pairLine().FindStringSubmatch(line); m != nil && strings.Contains(m[2]+" ", ": ") && strings.IndexByte(`"'[{|>&*!`, m[2][0]) < 0 {
		d.Column = utf8.RuneCountInString(m[1]) + 1
		d.EndColumn = d.Column + utf8.RuneCountInString(m[2])
		d.Suggestion = quote(m[2])
		d.Message += `; quote a text that contains ": "`
		return true
	}
	if before := s.filled(max(1, d.Line-1)); unspacedKey().MatchString(s.line(before)) {
		s.mark(d, before)
		d.Message += "; write a space after the colon of a key"
		return true
	}
	d.Message += `; quote a text that contains ": ", or indent the keys of a map equally`
	return true
}

// hintKey explains a key without a colon.
func (s *Source) hintKey(d *Diagnostic) bool {
	if !strings.Contains(d.Message, "expected ':'") {
		return false
	}
	for _, line := range []int{d.Line, max(1, d.Line-1)} {
		if text := s.line(line); !keyColon().MatchString(text) && strings.TrimSpace(text) != "" {
			s.mark(d, line)
			break
		}
	}
	hint := "; the line needs a key with a colon"
	if s.filled(len(s.lines)) == d.Line {
		hint += ", perhaps because the file is truncated"
	}
	d.Message += hint
	return true
}

// hintCharacter explains characters with a meaning in YAML.
func (s *Source) hintCharacter(d *Diagnostic) bool {
	switch {
	case strings.Contains(d.Message, "cannot start any token"):
		d.Message += "; quote a text that starts with %, @ or `"
	case strings.Contains(d.Message, "unknown escape"):
		d.Message += `; write \\ for a backslash, or use single quotes`
	default:
		return false
	}
	return true
}

// hintBlock explains a line that does not continue the list or map that it is in.
func (s *Source) hintBlock(d *Diagnostic) bool {
	if !strings.Contains(d.Message, "expected key") && !strings.Contains(d.Message, "expected '-'") &&
		!strings.Contains(d.Message, "expected <document start>") {
		return false
	}
	if m := pairLine().FindStringSubmatch(s.line(d.Line)); m != nil {
		if n := quotedLength(m[2], m[2][0]); (m[2][0] == '"' || m[2][0] == '\'') && n > 0 && n < len(m[2]) {
			d.Column = utf8.RuneCountInString(m[1]) + 1
			d.EndColumn = d.Column + utf8.RuneCountInString(m[2])
			d.Message += `; the text continues after its closing quote`
			return true
		}
	}
	d.Message += "; the indentation of the line fits no line above it"
	return true
}

// quote returns a text as a YAML scalar in quotes.
func quote(text string) string {
	if !strings.ContainsAny(text, "\n\r\t") {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return strconv.Quote(text)
}
