package decode

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// The bounds of a document. MaxDepth is the deepest nesting. maxMarks bounds what the parser builds: it counts
// the bytes that a node needs at least one of, so that eight megabytes of dashes
// do not become a gigabyte of nodes.
const (
	MaxDepth = 100
	maxMarks = 1_000_000
)

// Parse reads a YAML file into a source with its root node. path is its absolute
// path, and name what findings call it. What is wrong is reported; root is nil
// when nothing can be made of the text.
func Parse(path, name string, data []byte, to *Findings) *Source {
	text, offset, err := PlainText(data, true)
	src := NewSource(path, name, text)
	if err != nil {
		line, column := src.Position(offset)
		to.Report(Diagnostic{File: src.Name, Line: line, Column: column, Severity: Error, Code: CodeNotText, Message: err.Error()})
		return src
	}
	if Large(text, maxMarks) {
		to.Reportf(src, nil, Error, CodeTooLarge, "more than %d keys and items", maxMarks)
		return src
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || IsNull(doc.Content[0])) {
		to.Reportf(src, nil, Error, CodeEmpty, "the file is empty")
		return src
	} else if err != nil {
		to.Report(src.syntaxError(err))
		return src
	}
	if !wellFormed(src, to, doc.Content[0], 1) {
		return src
	}
	oneDocument(src, to, dec)
	src.Root = doc.Content[0]
	return src
}

// Large reports whether a document may have more than that many keys and items.
func Large(text string, most int) bool { return marks(text) > most }

// marks counts the bytes that separate or open nodes.
func marks(text string) int {
	n := 0
	for i := range len(text) {
		switch text[i] {
		case '-', ':', ',', '[', '{', '?', '\n':
			n++
		}
	}
	return n
}

// oneDocument says so when the file goes on after its first document.
func oneDocument(src *Source, to *Findings, dec *yaml.Decoder) {
	var next yaml.Node
	err := dec.Decode(&next)
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		to.Report(src.syntaxError(err))
	case len(next.Content) > 0 && next.Content[0].ShortTag() != "!!null":
		to.Reportf(src, next.Content[0], Warning, CodeMultipleDocuments, "only the first of the file's documents is read; this one has no effect")
	}
}

// wellFormed looks for what the parser lets pass: nesting without end and keys
// that stand twice. It does not follow aliases, so it visits every node once.
func wellFormed(src *Source, to *Findings, n *yaml.Node, depth int) bool {
	if depth > MaxDepth {
		to.Reportf(src, n, Error, CodeTooDeep, "nested more than %d levels deep", MaxDepth)
		return false
	}
	if n.Kind == yaml.MappingNode {
		uniqueKeys(src, to, n)
	}
	for _, c := range n.Content {
		if !wellFormed(src, to, c, depth+1) {
			return false
		}
	}
	return true
}

func uniqueKeys(src *Source, to *Findings, n *yaml.Node) {
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || isMerge(k) {
			continue
		}
		if first := seen[k.Value]; first != nil {
			to.Reportf(src, k, Error, CodeDuplicateKey, "%q stands twice in this map; it is first set in line %d", text.Clip(k.Value, 60), first.Line)
			continue
		}
		seen[k.Value] = k
	}
}

var yamlErrorLine = text.Pattern(`^line (\d+): `)

// syntaxError turns what the parser says into a finding. The parser counts the
// lines of its own faults, as opposed to those of its scanner, from 0.
func (s *Source) syntaxError(err error) Diagnostic {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := yamlErrorLine().FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
		if strings.HasPrefix(msg, "did not find expected") || strings.Contains(msg, "duplicate %") {
			line++
		}
	}
	d := Diagnostic{File: s.Name, Severity: Error, Code: CodeSyntax, Message: msg}
	if name, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		if i := strings.Index(s.Text, "*"+name); i >= 0 {
			d.Line, d.Column = s.Position(i)
			d.EndColumn = d.Column + 1 + utf8.RuneCountInString(name)
			return d
		}
	}
	line = max(1, min(line, len(s.lines)))
	for line > 1 && strings.TrimSpace(s.line(line)) == "" {
		line--
	}
	text := s.line(line)
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	if strings.Contains(indent, "\t") && strings.Contains(msg, "cannot start any token") {
		d.Message = "a line is indented with a tab; YAML takes spaces only"
	}
	d.Line, d.Column = line, len(indent)+1
	d.EndColumn = d.Column + max(1, utf8.RuneCountInString(text[len(indent):]))
	return d
}
