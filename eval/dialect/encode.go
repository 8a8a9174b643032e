package dialect

import (
	"bytes"
	"strings"

	"gopkg.in/yaml.v3"
)

// Encode returns a translated suite as the text of an eval.yaml for people: in block style, with texts
// of several lines as blocks. It changes the styles of the nodes.
func Encode(root *yaml.Node) ([]byte, error) {
	restyle(root)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err := enc.Encode(root)
	return b.Bytes(), err
}

func restyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, c := range n.Content {
		restyle(c)
	}
}
