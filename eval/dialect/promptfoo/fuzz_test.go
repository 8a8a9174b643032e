package promptfoo_test

import (
	"testing"

	"waza/eval/dialecttest"
)

// No text makes the loader fail, and a suite without errors can be written as an eval.yaml.
func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "promptfoo", isSuite)
	f.Add([]byte("prompts: ['{{a}} {{b']\nproviders: [openai:gpt-4o, {id: echo}]\ntests: [1, {vars: {a: x}, assert: [{type: not-equals, value: [x]}]}]"))
	f.Add([]byte("prompts: {raw: x}\ntargets: x\ntests: x\nredteam: {}"))
	f.Add([]byte("prompts: [{raw: x}, file://x]\nproviders: openai:x\ntests: [{assert: {}}, {vars: []}, {vars: {a: [1]}}, {}]"))
	dialecttest.Fuzz(f, "promptfooconfig.yaml", map[string]string{
		"x": "text", "x.csv": "a,__expected\n1,equals:2\n", "x.yaml": "- {vars: {a: 1}}\n", "x.jsonl": "{}\n", "x.json": "[{\"role\": \"user\", \"content\": \"x\"}]\n",
	})
}
