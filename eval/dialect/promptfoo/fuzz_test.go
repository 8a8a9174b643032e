package promptfoo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// A translation of any text is a map, or a configuration that is refused.
func FuzzTranslate(f *testing.F) {
	f.Add("prompts: ['{{a}} {{b']\nproviders: [openai:gpt-4o, {id: echo}]\ntests: [1, {vars: {a: x}, assert: [{type: not-equals, value: [x]}]}]")
	f.Add("prompts: {raw: x}\ntargets: x\ntests: x\nredteam: {}")
	f.Add("prompts: [{raw: x}, file://x]\nproviders: openai:x\ntests: [{assert: {}}, {vars: []}, {vars: {a: [1]}}, {}]")
	f.Fuzz(func(t *testing.T, content string) {
		var doc yaml.Node
		if yaml.Unmarshal([]byte(content), &doc) != nil || len(doc.Content) != 1 {
			return
		}
		root := doc.Content[0]
		if !Dialect().Recognizes(root) {
			return
		}
		tr := &dialect.Translation{Findings: &decode.Findings{}, Source: &decode.Source{Path: "/x/promptfooconfig.yaml", Root: root}}
		translate(tr)
		require.Equal(t, yaml.MappingNode, tr.Suite.Kind)
	})
}
