package eval

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// The bounds of a document. maxMarks bounds what the parser builds: it counts
// the bytes that a node needs at least one of, so that eight megabytes of dashes
// do not become a gigabyte of nodes.
const (
	maxDepth = 100
	maxMarks = 1_000_000
)

// parse reads a YAML file into a source with its root node. What is wrong is
// reported; root is nil when nothing can be made of the text.
func (l *loader) parse(path string, data []byte) *source {
	text, offset, err := plainText(data, true)
	src := newSource(path, l.display(path), text)
	l.texts = append(l.texts, text)
	if err != nil {
		line, column := src.position(offset)
		l.report(Diagnostic{File: src.name, Line: line, Column: column, Severity: Error, Code: CodeNotText, Message: err.Error()})
		return src
	}
	if marks(text) > maxMarks {
		l.reportf(src, nil, Error, CodeTooLarge, "more than %d keys and items", maxMarks)
		return src
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || isNull(doc.Content[0])) {
		l.reportf(src, nil, Error, CodeEmpty, "the file is empty")
		return src
	} else if err != nil {
		l.report(src.syntaxError(err))
		return src
	}
	if !l.wellFormed(src, doc.Content[0], 1) {
		return src
	}
	l.oneDocument(src, dec)
	src.root = doc.Content[0]
	return src
}

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
func (l *loader) oneDocument(src *source, dec *yaml.Decoder) {
	var next yaml.Node
	err := dec.Decode(&next)
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		l.report(src.syntaxError(err))
	case len(next.Content) > 0 && next.Content[0].ShortTag() != "!!null":
		l.reportf(src, next.Content[0], Warning, CodeMultipleDocuments, "only the first of the file's documents is read; this one has no effect")
	}
}

// wellFormed looks for what the parser lets pass: nesting without end and keys
// that stand twice. It does not follow aliases, so it visits every node once.
func (l *loader) wellFormed(src *source, n *yaml.Node, depth int) bool {
	if depth > maxDepth {
		l.reportf(src, n, Error, CodeTooDeep, "nested more than %d levels deep", maxDepth)
		return false
	}
	if n.Kind == yaml.MappingNode {
		l.uniqueKeys(src, n)
	}
	for _, c := range n.Content {
		if !l.wellFormed(src, c, depth+1) {
			return false
		}
	}
	return true
}

func (l *loader) uniqueKeys(src *source, n *yaml.Node) {
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || isMerge(k) {
			continue
		}
		if first := seen[k.Value]; first != nil {
			l.reportf(src, k, Error, CodeDuplicateKey, "%q stands twice in this map; it is first set in line %d", text.Clip(k.Value, 60), first.Line)
			continue
		}
		seen[k.Value] = k
	}
}

var yamlErrorLine = regexp.MustCompile(`^line (\d+): `)

// syntaxError turns what the parser says into a finding. The parser counts the
// lines of its own faults, as opposed to those of its scanner, from 0.
func (s *source) syntaxError(err error) Diagnostic {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := yamlErrorLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
		if strings.HasPrefix(msg, "did not find expected") || strings.Contains(msg, "duplicate %") {
			line++
		}
	}
	d := Diagnostic{File: s.name, Severity: Error, Code: CodeSyntax, Message: msg}
	if name, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		if i := strings.Index(s.text, "*"+name); i >= 0 {
			d.Line, d.Column = s.position(i)
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
