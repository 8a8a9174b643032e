package promptfoo

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// maxExpanded limits the bytes that the values, texts and graders of all cases together need, because
// variables, prompts and aliases multiply them.
const maxExpanded = 256 << 20

var errExpanded = fmt.Errorf("its cases need more than %d MiB", maxExpanded>>20)

// A budget counts the bytes that a configuration can still need.
type budget struct{ left int }

// spend takes bytes from the budget; ok is false if it is exceeded.
func (b *budget) spend(bytes int) (ok bool) {
	b.left -= min(bytes, b.left+1)
	return b.left >= 0
}

// exceeded reports whether more was spent than there is.
func (b *budget) exceeded() bool { return b.left < 0 }

// valueSize is about the bytes that a value needs besides its text.
const valueSize = 100

// sizeOf returns about the bytes that a value needs.
func sizeOf(v any) int {
	size := valueSize
	switch v := v.(type) {
	case string:
		size += len(v)
	case []any:
		for _, item := range v {
			size += sizeOf(item)
		}
	case map[string]any:
		for key, item := range v {
			size += valueSize + len(key) + sizeOf(item)
		}
	}
	return size
}

// nodeSize returns about the bytes that a node without aliases needs.
func nodeSize(n *yaml.Node) int {
	size := valueSize + len(n.Value)
	for _, child := range n.Content {
		size += nodeSize(child)
	}
	return size
}
