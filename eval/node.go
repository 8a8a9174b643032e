package eval

import (
	"fmt"
	"strings"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// follow returns what an alias stands for, and any other node itself.
func follow(n *yaml.Node) *yaml.Node {
	for hops := 0; n != nil && n.Kind == yaml.AliasNode && hops < 8; hops++ {
		n = n.Alias
	}
	return n
}

// lookup returns the value of a key of a map, merge keys not included; nil when
// there is none.
func lookup(n *yaml.Node, key string) *yaml.Node {
	_, v := lookupPair(n, key)
	return v
}

func lookupPair(n *yaml.Node, key string) (k, v *yaml.Node) {
	n = follow(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// place returns the node that a path of keys and indexes leads to, or the
// nearest one above it that is written.
func place(n *yaml.Node, path ...any) *yaml.Node {
	found, _ := walkPath(n, path)
	return found
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge"
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func isText(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
}

// describe names a node in messages: `a list`, `"many"`, `3.5`.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	if isNull(n) {
		return "nothing"
	}
	value := text.Clip(strings.TrimSpace(n.Value), 40)
	if isText(n) {
		return fmt.Sprintf("%q", value)
	}
	return value
}
