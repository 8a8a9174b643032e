package promptfoo

import (
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// maxMerged limits the pairs that merge keys add to a file, because one map can be merged into many.
const maxMerged = 200_000

// A merger replaces the merge keys (<<) of a file by the pairs that they mean.
type merger struct {
	left int
	done map[*yaml.Node]bool
}

// mergeKeys replaces the merge keys in the maps of a file. It returns false if they mean too many pairs.
func mergeKeys(root *yaml.Node) (ok bool) {
	m := &merger{maxMerged, map[*yaml.Node]bool{}}
	m.resolve(root)
	return m.left >= 0
}

func (m *merger) resolve(n *yaml.Node) {
	if n == nil || m.done[n] || m.left < 0 {
		return
	}
	m.done[n] = true // before its parts, so that a map that contains itself ends
	for _, child := range n.Content {
		m.resolve(child)
	}
	if n.Kind == yaml.MappingNode {
		m.expand(n)
	}
}

// expand replaces the merge keys of a map. Keys of the map itself come first, then those of the first merged map.
func (m *merger) expand(n *yaml.Node) {
	var own, merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merged = append(merged, n.Content[i+1])
		} else {
			own = append(own, key, n.Content[i+1])
		}
	}
	if len(merged) == 0 {
		return
	}
	n.Content = own
	seen := map[string]bool{}
	for i := 0; i < len(own); i += 2 {
		seen[own[i].Value] = true
	}
	for _, source := range merged {
		source = decode.Follow(source)
		maps := []*yaml.Node{source}
		if source != nil && source.Kind == yaml.SequenceNode {
			maps = dialect.Items(source)
		}
		for _, from := range maps {
			m.add(n, from, seen)
		}
	}
}

// add adds the pairs of a map whose keys are not seen.
func (m *merger) add(n, from *yaml.Node, seen map[string]bool) {
	if from == nil || from.Kind != yaml.MappingNode {
		return
	}
	m.resolve(from)
	for pair := range slices.Chunk(from.Content, 2) {
		if len(pair) < 2 || seen[pair[0].Value] || pair[0].ShortTag() == "!!merge" {
			continue
		}
		if m.left--; m.left < 0 {
			return
		}
		seen[pair[0].Value] = true
		n.Content = append(n.Content, pair...)
	}
}
