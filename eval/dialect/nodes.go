package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// The functions below build nodes of a suite. The node `at` is the original of the new node, which
// gets its place; nil means the whole file.

// Scalar returns a text, a number or a boolean.
func Scalar(at *yaml.Node, value any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}
	switch v := value.(type) {
	case string:
		n.Value = v
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	case int:
		n.Tag, n.Value = "!!int", strconv.Itoa(v)
	case float64:
		n.Tag, n.Value = "!!float", strconv.FormatFloat(v, 'g', -1, 64)
		if _, err := strconv.Atoi(n.Value); err == nil {
			n.Tag = "!!int"
		}
	default:
		panic(fmt.Sprintf("dialect.Scalar: %T", value))
	}
	return placed(n, at)
}

// List returns a list.
func List(at *yaml.Node, items ...*yaml.Node) *yaml.Node {
	return placed(&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}, at)
}

// Texts returns a list of texts.
func Texts(at *yaml.Node, texts ...string) *yaml.Node {
	list := List(at)
	for _, t := range texts {
		list.Content = append(list.Content, Scalar(at, t))
	}
	return list
}

// A Map is a map that is being built.
type Map struct{ Node *yaml.Node }

// NewMap returns an empty map.
func NewMap(at *yaml.Node) Map {
	return Map{placed(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, at)}
}

// Set appends a key, or replaces its value. It does nothing if the value is nil. It returns the node
// of the key, for comments.
func (m Map) Set(key string, value *yaml.Node) *yaml.Node {
	if value == nil {
		return &yaml.Node{}
	}
	for i := 0; i < len(m.Node.Content); i += 2 {
		if k := m.Node.Content[i]; k.Value == key {
			m.Node.Content[i+1] = value
			return k
		}
	}
	k := placed(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
	m.Node.Content = append(m.Node.Content, k, value)
	return k
}

// Remove removes a key, if the map has it.
func (m Map) Remove(key string) {
	for i := 0; i+1 < len(m.Node.Content); i += 2 {
		if m.Node.Content[i].Value == key {
			m.Node.Content = slices.Delete(m.Node.Content, i, i+2)
			return
		}
	}
}

// Get returns the value of a key, or nil.
func (m Map) Get(key string) *yaml.Node { return decode.Lookup(m.Node, key) }

// Len returns the number of keys.
func (m Map) Len() int { return len(m.Node.Content) / 2 }

// Checkpoint returns a checkpoint after a turn. Its graders have no part in the score of a trial, which fails
// if they do.
func Checkpoint(at *yaml.Node, turn int, graders ...*yaml.Node) *yaml.Node {
	m := NewMap(at)
	m.Set("after_turn", Scalar(at, turn))
	if len(graders) > 0 {
		m.Set("graders", List(at, graders...))
	}
	return m.Node
}

// placed moves a node to the place of its original.
func placed(n, at *yaml.Node) *yaml.Node {
	if at == nil {
		return n
	}
	n.Line, n.Column = at.Line, at.Column
	if n.Kind == yaml.ScalarNode && at.Kind == yaml.ScalarNode && n.Value == at.Value {
		n.Style = at.Style
	}
	return n
}

// maxCopied limits the nodes of a copy, because aliases can expand a short text without end.
const maxCopied = 1_000_000

// Copy returns a deep copy of a suite without its aliases, which are replaced by copies of their
// targets, so that the copy can be changed and encoded. It returns an error if aliases expand the
// suite to more than maxCopied nodes, or beyond [decode.MaxDepth]. A translation does not need it: the
// decoder of suites limits aliases itself.
func Copy(n *yaml.Node) (*yaml.Node, error) {
	left := maxCopied
	return copyNode(n, decode.MaxDepth, &left)
}

func copyNode(n *yaml.Node, depth int, left *int) (*yaml.Node, error) {
	if n = decode.Follow(n); n == nil {
		return nil, nil
	}
	if *left--; *left < 0 || depth == 0 || n.Kind == yaml.AliasNode {
		return nil, errors.New("the aliases of the suite expand to too many values, or contain themselves")
	}
	c := *n
	c.Anchor, c.Alias, c.Content = "", nil, make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		var err error
		if c.Content[i], err = copyNode(child, depth-1, left); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// TextOf returns the value of a scalar as text; "" for null, other nodes and nil.
func TextOf(n *yaml.Node) string {
	if n = decode.Follow(n); n == nil || n.Kind != yaml.ScalarNode || decode.IsNull(n) {
		return ""
	}
	return n.Value
}

// Items returns the items of a list, with aliases followed; nil for other nodes.
func Items(n *yaml.Node) []*yaml.Node {
	if n = decode.Follow(n); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	items := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		items[i] = decode.Follow(c)
	}
	return items
}

// ListOf returns the items of a list, as [Items] does. ok is false if the node is neither a list nor absent.
func ListOf(n *yaml.Node) (items []*yaml.Node, ok bool) {
	n = decode.Follow(n)
	return Items(n), n == nil || decode.IsNull(n) || n.Kind == yaml.SequenceNode
}

// Entries returns the items of a file that is a list, or of the first list that one of the keys of a map
// has and that is not empty.
func Entries(root *yaml.Node, keys []string) []*yaml.Node {
	if root.Kind == yaml.SequenceNode {
		return Items(root)
	}
	for _, key := range keys {
		if list := Items(decode.Lookup(root, key)); len(list) > 0 {
			return list
		}
	}
	return nil
}

// Pairs returns the keys and values of a map, with aliases of values followed; nil for other nodes.
func Pairs(n *yaml.Node) []decode.Pair {
	if n = decode.Follow(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	pairs := make([]decode.Pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		pairs = append(pairs, decode.Pair{Key: n.Content[i], Value: decode.Follow(n.Content[i+1])})
	}
	return pairs
}

// SnakeKeys returns a node in whose maps the keys that are known have their names in snake_case: authors also write
// expectedSkill and expected-skill for expected_skill. Files that have such names in maps of files keep them. It
// returns the node itself if that changes nothing, and does not change it.
func SnakeKeys(n *yaml.Node, known func(key string) bool) *yaml.Node {
	return snakeKeys(n, known, maxSnakeDepth)
}

// maxSnakeDepth limits the depth of maps in which [SnakeKeys] looks: a file, a list, a case, a list, a check and
// its options.
const maxSnakeDepth = 8

func snakeKeys(n *yaml.Node, known func(string) bool, depth int) *yaml.Node {
	if n == nil || depth == 0 || n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		return n
	}
	content := n.Content
	changed := false
	set := func(i int, to *yaml.Node) {
		if !changed {
			content, changed = slices.Clone(content), true
		}
		content[i] = to
	}
	isMap := n.Kind == yaml.MappingNode
	for i, child := range n.Content {
		if isMap && i%2 == 0 {
			if name := Snake(child.Value); name != child.Value && known(name) && !known(child.Value) && decode.Lookup(n, name) == nil {
				key := *child
				key.Value = name
				set(i, &key)
			}
			continue
		}
		if isMap && n.Content[i-1].Value == "files" {
			continue
		}
		if to := snakeKeys(child, known, depth-1); to != child { // not in aliases, which can be many
			set(i, to)
		}
	}
	if !changed {
		return n
	}
	node := *n
	node.Content = content
	return &node
}

// Snake returns a name in snake_case: expected_skill for expectedSkill and expected-skill.
func Snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '-' || r == ' ':
			b.WriteByte('_')
		case 'A' <= r && r <= 'Z':
			if i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
				b.WriteByte('_')
			}
			b.WriteRune(r - 'A' + 'a')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
