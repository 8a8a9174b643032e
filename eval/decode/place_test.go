package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// The parser ends lines at more characters than editors do.
func TestPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1\nb: 2\n":     "a 1:1 1 1:4 b 2:1 2 2:4",
		"a: 1\r\nb: 2\r\n": "a 1:1 1 1:4 b 2:1 2 2:4",
		"a: 1\rb: 2\nc: 3": "a 1:1 1 1:4 b 1:6 2 1:9 c 2:1 3 2:4",
		"\r\r0:\nx: y":     "0 1:3  1:5 x 2:1 y 2:4",
		"a: \"x\u2028\u2029y\" # z\nb: [é, 2]\n":   "a 1:1 x\u2028\u2029y 1:4 b 2:1 é 2:5 2 2:8",
		"a: 1 # \u0085b: 2\u0085c: 3\nd: {e: 4}\n": "a 1:1 1 1:4 b 1:9 2 1:12 c 1:14 3 1:17 d 2:1 e 2:5 4 2:8",
	} {
		src := decode.Parse("/f", "f", []byte(text), new(decode.Findings))
		require.NotNil(t, src.Root, "%q", text)
		var got []string
		var walk func(n *yaml.Node)
		walk = func(n *yaml.Node) {
			if n.Kind == yaml.ScalarNode {
				got = append(got, fmt.Sprintf("%s %d:%d", n.Value, n.Line, n.Column))
			}
			for _, c := range n.Content {
				walk(c)
			}
		}
		walk(src.Root)
		require.Equal(t, want, strings.Join(got, " "), "%q", text)
	}
}
