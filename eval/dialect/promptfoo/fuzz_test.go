package promptfoo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialecttest"
	"waza/eval/files"
)

// No text makes the loader fail, and a suite without errors can be written as an eval.yaml.
func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "promptfoo", isSuite)
	f.Add([]byte("prompts: ['{{a}} {{b']\nproviders: [openai:gpt-4o, {id: echo}]\ntests: [1, {vars: {a: x}, assert: [{type: not-equals, value: [x]}]}]"))
	f.Add([]byte("prompts: {raw: x}\ntargets: x\ntests: x\nredteam: {}"))
	f.Add([]byte("prompts: [{raw: x}, file://x]\nproviders: openai:x\ntests: [{assert: {}}, {vars: []}, {vars: {a: [1]}}, {}]"))
	dir := f.TempDir()
	path := filepath.Join(dir, "promptfooconfig.yaml")
	for name, content := range map[string]string{
		"x": "text", "x.csv": "a,__expected\n1,equals:2\n", "x.yaml": "- {vars: {a: 1}}\n", "x.jsonl": "{}\n", "x.json": "[{\"role\": \"user\", \"content\": \"x\"}]\n",
	} {
		require.NoError(f, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		suite, found, err := eval.Load(path, eval.Options{View: files.View{Overlay: map[string][]byte{path: data}}})
		require.NoError(t, err)
		if suite == nil {
			require.True(t, found.HasErrors(), "neither a suite nor an error")
			return
		}
		if suite.Format != "" && !found.HasErrors() {
			root, err := suite.Node()
			require.NoError(t, err)
			_, err = dialect.Encode(root)
			require.NoError(t, err)
		}
	})
}
