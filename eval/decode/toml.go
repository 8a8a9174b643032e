package decode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"gopkg.in/yaml.v3"
)

// maxTOMLMarks is the limit of maxMarks for TOML, whose parser nests one call per bracket.
const maxTOMLMarks = 100_000

// ParseTOML is like [Parse] for a TOML file. The nodes are those of an equal YAML file, with their
// places in the TOML text. Dates and times become texts.
func ParseTOML(path, name string, data []byte, to *Findings) *Source {
	src, ok := newText(path, name, data, true, maxTOMLMarks, to)
	if !ok {
		return src
	}
	// The parser of expressions does not know which tables a document may define.
	var whole map[string]any
	err := toml.Unmarshal([]byte(src.Text), &whole)
	p := tomlParser{src: src, members: map[*yaml.Node]map[string]*yaml.Node{}}
	if err == nil {
		err = p.parse()
	}
	switch {
	case err != nil:
		to.Report(src.tomlFault(err))
	case len(p.root.Content) == 0:
		to.Reportf(src, nil, Error, CodeEmpty, "the file is empty")
	case src.checkStructure(to, p.root, 1):
		src.Root = p.root
	}
	return src
}

// tomlFault returns the finding for an error of the parser.
func (s *Source) tomlFault(err error) Diagnostic {
	d := Diagnostic{File: s.Name, Severity: Error, Code: CodeSyntax, Message: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		d.Line, d.Column = at.Position()
		d.Line, d.Column = max(1, d.Line), max(1, d.Column)
	}
	return d
}

// A tomlParser builds nodes from the expressions of a valid TOML text.
type tomlParser struct {
	src     *Source
	parser  unstable.Parser
	root    *yaml.Node
	members map[*yaml.Node]map[string]*yaml.Node // of each map
}

func (p *tomlParser) parse() error {
	p.parser.Reset([]byte(p.src.Text))
	p.root = p.newMap(0)
	p.root.Line, p.root.Column = 1, 1
	table := p.root
	for p.parser.NextExpression() {
		e := p.parser.Expression()
		var err error
		switch e.Kind {
		case unstable.Table:
			table, err = p.descend(p.root, e.Key())
		case unstable.ArrayTable:
			table, err = p.addTable(e.Key())
		case unstable.KeyValue:
			err = p.set(table, e)
		}
		if err != nil {
			return err
		}
	}
	return p.parser.Error()
}

func (p *tomlParser) placed(kind yaml.Kind, tag string, offset int) *yaml.Node {
	n := &yaml.Node{Kind: kind, Tag: tag}
	n.Line, n.Column = p.src.Position(offset)
	return n
}

func (p *tomlParser) newMap(offset int) *yaml.Node {
	n := p.placed(yaml.MappingNode, "!!map", offset)
	p.members[n] = map[string]*yaml.Node{}
	return n
}

// add appends a key to a map.
func (p *tomlParser) add(to *yaml.Node, key *unstable.Node, value *yaml.Node) error {
	if p.members[to] == nil {
		return fmt.Errorf("the key %q is in a value that is no table", key.Data)
	}
	k := p.placed(yaml.ScalarNode, "!!str", int(key.Raw.Offset))
	k.Value = string(key.Data)
	switch raw := p.src.Text[key.Raw.Offset:]; {
	case strings.HasPrefix(raw, `"`):
		k.Style = yaml.DoubleQuotedStyle
	case strings.HasPrefix(raw, `'`):
		k.Style = yaml.SingleQuotedStyle
	}
	to.Content = append(to.Content, k, value)
	p.members[to][k.Value] = value
	return nil
}

// descend returns the map at the parts of a key below another, and makes what does not exist. Of an
// array of tables, it is the last.
func (p *tomlParser) descend(in *yaml.Node, key unstable.Iterator) (*yaml.Node, error) {
	for key.Next() {
		var err error
		if in, err = p.enter(in, key.Node()); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (p *tomlParser) enter(in *yaml.Node, key *unstable.Node) (*yaml.Node, error) {
	next := p.members[in][string(key.Data)]
	if next == nil {
		next = p.newMap(int(key.Raw.Offset))
		return next, p.add(in, key, next)
	}
	if next.Kind == yaml.SequenceNode && len(next.Content) > 0 {
		next = next.Content[len(next.Content)-1]
	}
	return next, nil
}

// addTable appends a table to the array at a key.
func (p *tomlParser) addTable(key unstable.Iterator) (*yaml.Node, error) {
	in := p.root
	for key.Next() {
		if !key.IsLast() {
			var err error
			if in, err = p.enter(in, key.Node()); err != nil {
				return nil, err
			}
			continue
		}
		list := p.members[in][string(key.Node().Data)]
		if list == nil {
			list = p.placed(yaml.SequenceNode, "!!seq", int(key.Node().Raw.Offset))
			if err := p.add(in, key.Node(), list); err != nil {
				return nil, err
			}
		}
		in = p.newMap(int(key.Node().Raw.Offset))
		list.Content = append(list.Content, in)
	}
	return in, nil
}

// set adds a key and its value to a map.
func (p *tomlParser) set(in *yaml.Node, kv *unstable.Node) error {
	key := kv.Key()
	for key.Next() {
		n := key.Node()
		if !key.IsLast() {
			var err error
			if in, err = p.enter(in, n); err != nil {
				return err
			}
			continue
		}
		start := int(n.Raw.Offset + n.Raw.Length)
		for start < len(p.src.Text) && strings.IndexByte(" \t=", p.src.Text[start]) >= 0 {
			start++
		}
		value, err := p.value(kv.Value(), start)
		if err != nil {
			return err
		}
		return p.add(in, n, value)
	}
	return nil
}

// value returns a value that starts at an offset.
func (p *tomlParser) value(v *unstable.Node, offset int) (*yaml.Node, error) {
	if v.Raw.Length > 0 {
		offset = int(v.Raw.Offset)
	}
	switch v.Kind {
	case unstable.InlineTable:
		n := p.newMap(offset)
		n.Style = yaml.FlowStyle
		for it := v.Children(); it.Next(); {
			if it.Node().Kind != unstable.KeyValue {
				continue // a comment
			}
			if err := p.set(n, it.Node()); err != nil {
				return nil, err
			}
		}
		return n, nil
	case unstable.Array:
		n := p.placed(yaml.SequenceNode, "!!seq", offset)
		n.Style = yaml.FlowStyle
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				continue
			}
			item, err := p.value(it.Node(), offset) // of a list in a list, the place of the outer one
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		return n, nil
	}
	return p.scalar(v, offset)
}

func (p *tomlParser) scalar(v *unstable.Node, offset int) (*yaml.Node, error) {
	n := p.placed(yaml.ScalarNode, "!!str", offset)
	n.Value = string(v.Data)
	plain := strings.TrimPrefix(strings.ReplaceAll(n.Value, "_", ""), "+")
	switch v.Kind {
	case unstable.String:
		switch raw := p.src.Text[offset:]; {
		case strings.HasPrefix(raw, `"""`), strings.HasPrefix(raw, `'''`):
			n.Style = yaml.LiteralStyle
		case strings.HasPrefix(raw, `'`):
			n.Style = yaml.SingleQuotedStyle
		default:
			n.Style = yaml.DoubleQuotedStyle
		}
	case unstable.Bool:
		n.Tag = "!!bool"
	case unstable.Integer:
		number, err := strconv.ParseInt(plain, intBase(plain), 64)
		if err != nil {
			return nil, err
		}
		n.Tag, n.Value = "!!int", strconv.FormatInt(number, 10)
	case unstable.Float:
		n.Tag, n.Value = "!!float", plain
		if sign, name := strings.TrimRight(plain, "infa"), strings.TrimPrefix(plain, "-"); name == "inf" || name == "nan" {
			n.Value = sign + "." + name
		}
	}
	return n, nil
}

// intBase returns 0 for a number with a prefix such as 0x, which names its base.
func intBase(number string) int {
	if strings.HasPrefix(number, "0x") || strings.HasPrefix(number, "0o") || strings.HasPrefix(number, "0b") {
		return 0
	}
	return 10
}
