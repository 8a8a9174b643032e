package decode

import (
	"errors"
	"io"
	"strings"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// MaxTextBytes is the size limit of a YAML file or a prompt, on the disk or in an editor.
const MaxTextBytes = 8 << 20

// Limits of a document. MaxDepth is the deepest nesting. maxMarks limits the nodes that the
// parser builds. It counts bytes of which each node needs at least one, so that eight megabytes
// of dashes do not become a gigabyte of nodes.
const (
	MaxDepth = 100
	maxMarks = 1_000_000
)

// Parse parses a YAML file. path is its absolute path, and name its name in findings. Parse
// reports faults to the findings. The root of the result is nil when the text cannot be parsed.
func Parse(path, name string, data []byte, to *Findings) *Source {
	src, ok := newText(path, name, data, true, maxMarks, to)
	if !ok {
		return src
	}
	dec := yaml.NewDecoder(strings.NewReader(src.Text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || IsNull(doc.Content[0])) {
		to.Reportf(src, nil, Error, CodeEmpty, "the file is empty")
		return src
	} else if err != nil {
		to.Report(src.syntaxError(err))
		return src
	}
	src.Place(&doc)
	if !src.checkStructure(to, doc.Content[0], 1) {
		return src
	}
	src.reportFurtherDocuments(to, dec)
	src.Root = doc.Content[0]
	return src
}

// Large reports whether a document may have more keys and items than most.
func Large(text string, most int) bool { return marks(text) > most }

// marks counts the bytes that separate or start nodes.
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

func (s *Source) reportFurtherDocuments(to *Findings, dec *yaml.Decoder) {
	var next yaml.Node
	err := dec.Decode(&next)
	s.Place(&next)
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		to.Report(s.syntaxError(err))
	case len(next.Content) > 0 && next.Content[0].ShortTag() != "!!null":
		to.Reportf(s, next.Content[0], Warning, CodeMultipleDocuments, "waza reads only the first document of a file; this one has no effect")
	}
}

// checkStructure looks for faults that the parser accepts: nesting that is too deep, and duplicate
// keys. It does not follow aliases, so it visits every node once.
func (s *Source) checkStructure(to *Findings, n *yaml.Node, depth int) bool {
	if depth > MaxDepth {
		to.Reportf(s, n, Error, CodeTooDeep, "nested more than %d levels deep", MaxDepth)
		return false
	}
	if n.Kind == yaml.MappingNode {
		s.checkUniqueKeys(to, n)
	}
	for _, c := range n.Content {
		if !s.checkStructure(to, c, depth+1) {
			return false
		}
	}
	return true
}

func (s *Source) checkUniqueKeys(to *Findings, n *yaml.Node) {
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || isMerge(k) {
			continue
		}
		if first := seen[k.Value]; first != nil {
			to.Reportf(s, k, Error, CodeDuplicateKey, "duplicate key %q; it is first set in line %d", text.Clip(k.Value, 60), first.Line)
			continue
		}
		seen[k.Value] = k
	}
}
