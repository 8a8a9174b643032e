package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ParseFile parses a file in the syntax that its extension names: JSON for .json, TOML for .toml, else
// YAML, or JSON if it contains that. See [Parse], [ParseJSON] and [ParseTOML].
func ParseFile(path, name string, data []byte, to *Findings) *Source {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return ParseJSON(path, name, data, to)
	case ".toml":
		return ParseTOML(path, name, data, to)
	}
	if start := bytes.TrimLeft(data, jsonSpace); len(start) > 0 && (start[0] == '{' || start[0] == '[') && json.Valid(data) {
		return ParseJSON(path, name, data, to)
	}
	return Parse(path, name, data, to)
}

// ParseJSON is like [Parse] for a JSON file. The nodes are those of an equal YAML file, with their
// places in the JSON text. The parser of YAML reads almost all JSON, but not the pairs of \u escapes
// that JSON has for characters such as emoji.
func ParseJSON(path, name string, data []byte, to *Findings) *Source {
	src, ok := newText(path, name, data, false, maxMarks, to)
	if !ok {
		return src
	}
	if strings.Trim(src.Text, jsonSpace) == "" {
		to.Reportf(src, nil, Error, CodeEmpty, "the file is empty")
		return src
	}
	p := jsonParser{src: src, dec: json.NewDecoder(strings.NewReader(src.Text)), at: mark{1, 1}}
	p.dec.UseNumber()
	root, err := p.value(1)
	if err == nil {
		err = p.end()
	}
	var deep *tooDeepError
	switch {
	case errors.As(err, &deep):
		to.Reportf(src, &yaml.Node{Line: deep.at.line, Column: deep.at.column}, Error, CodeTooDeep, "nested more than %d levels deep", MaxDepth)
	case err != nil:
		to.Report(p.fault(err))
	case IsNull(root):
		to.Reportf(src, nil, Error, CodeEmpty, "the file is empty")
	case src.checkStructure(to, root, 1):
		src.Root = root
	}
	return src
}

// jsonSpace are the characters that JSON allows between tokens.
const jsonSpace = " \t\r\n"

// A jsonParser builds nodes from the tokens of a JSON text.
type jsonParser struct {
	src    *Source
	dec    *json.Decoder
	offset int  // up to which the place is counted
	at     mark // the place of offset
}

type tooDeepError struct{ at mark }

func (*tooDeepError) Error() string { return "nested too deeply" }

// errTrailing means that a document has more text after its value.
var errTrailing = errors.New("more text after the end of the document")

// token returns the next token and the place where it starts.
func (p *jsonParser) token() (json.Token, mark, error) {
	p.pass(int(p.dec.InputOffset()))
	for p.offset < len(p.src.Text) && strings.IndexByte(jsonSpace+",:", p.src.Text[p.offset]) >= 0 {
		p.pass(p.offset + 1)
	}
	at := p.at
	t, err := p.dec.Token()
	return t, at, err
}

// pass counts the lines and characters up to an offset.
func (p *jsonParser) pass(offset int) {
	for p.offset < offset {
		r, size := utf8.DecodeRuneInString(p.src.Text[p.offset:])
		p.at.pass(r == '\n')
		p.offset += size
	}
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	t, at, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: at.line, Column: at.column}
	switch t := t.(type) {
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(t)
	case json.Number:
		n.Tag, n.Value = "!!int", t.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case string:
		n.Tag, n.Value, n.Style = "!!str", t, yaml.DoubleQuotedStyle
	case json.Delim:
		return p.container(n, t, depth)
	}
	return n, nil
}

// container reads the members of an object or an array, and its end.
func (p *jsonParser) container(n *yaml.Node, start json.Delim, depth int) (*yaml.Node, error) {
	if depth >= MaxDepth {
		return nil, &tooDeepError{mark{n.Line, n.Column}}
	}
	n.Kind, n.Tag, n.Style = yaml.SequenceNode, "!!seq", yaml.FlowStyle
	if start == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for p.dec.More() {
		c, err := p.value(depth + 1) // of an object, keys and values in turn
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, c)
	}
	_, _, err := p.token()
	return n, err
}

// end returns an error unless only space follows.
func (p *jsonParser) end() error {
	p.pass(int(p.dec.InputOffset()))
	if strings.Trim(p.src.Text[p.offset:], jsonSpace) == "" {
		return nil
	}
	for strings.IndexByte(jsonSpace, p.src.Text[p.offset]) >= 0 {
		p.pass(p.offset + 1)
	}
	return errTrailing
}

// fault returns the finding for an error of the parser.
func (p *jsonParser) fault(err error) Diagnostic {
	d := Diagnostic{File: p.src.Name, Severity: Error, Code: CodeSyntax, Line: p.at.line, Column: p.at.column}
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		p.pass(len(p.src.Text))
		d.Line, d.Column = p.at.line, p.at.column
		d.Message = "the file ends in the middle of its JSON, perhaps because it is truncated"
	case errors.As(err, &syntax):
		if at := int(syntax.Offset) - 1; at >= p.offset && at <= len(p.src.Text) {
			p.pass(at)
			d.Line, d.Column = p.at.line, p.at.column
		}
		d.Message = "not valid JSON: " + syntax.Error()
		if strings.HasPrefix(p.src.Text[p.offset:], "/") {
			d.Message = "not valid JSON: it must not contain comments"
		}
	default:
		d.Message = "not valid JSON: " + err.Error()
	}
	return d
}
