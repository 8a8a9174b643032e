package decode

import (
	"fmt"
	"strings"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// Follow returns the target of an alias, and any other node itself.
func Follow(n *yaml.Node) *yaml.Node {
	for hops := 0; n != nil && n.Kind == yaml.AliasNode && hops < 8; hops++ {
		n = n.Alias
	}
	return n
}

// Lookup returns the value of a key in a map, or nil. It ignores merge keys.
func Lookup(n *yaml.Node, key string) *yaml.Node {
	_, v := LookupPair(n, key)
	return v
}

// LookupPair is like [Lookup], but also returns the key.
func LookupPair(n *yaml.Node, key string) (k, v *yaml.Node) {
	n = Follow(n)
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

// Place returns the node at a path of keys and indexes, or the nearest existing node above it.
func Place(n *yaml.Node, path ...any) *yaml.Node {
	found, _ := Walk(n, path)
	return found
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge"
}

// IsNull reports whether a node is absent, null or empty.
func IsNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// IsText reports whether a node is a scalar that YAML decodes as a string.
func IsText(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
}

// Describe returns a description of a node for messages: `a list`, `"many"`, `3.5`.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	if IsNull(n) {
		return "nothing"
	}
	value := text.Clip(strings.TrimSpace(n.Value), 40)
	if IsText(n) {
		return fmt.Sprintf("%q", value)
	}
	return value
}
