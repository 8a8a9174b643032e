// Package dotnet translates the eval.yaml of skill-validator, the tool of dotnet/skills. Its scenarios
// are tasks, which an agent does with the skill under test and without it.
//
// The file tests/PLUGIN/SKILL/eval.yaml tests the skill plugins/PLUGIN/skills/SKILL. Vally and waza use
// the same file name, so the content decides whose file it is.
package dotnet

import (
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name:       "dotnet-skills",
		Named:      func(string) bool { return false }, // a search reads each eval.yaml
		Recognizes: recognizes,
		Translate:  translate,
	}
}

// recognizes reports whether a file has scenarios with prompts. The scenarios of promptfoo have none.
func recognizes(root *yaml.Node) bool {
	for _, key := range []string{"tasks", "tasks_from", "stimuli", "tests", "prompts", "providers"} {
		if decode.Lookup(root, key) != nil {
			return false
		}
	}
	for _, s := range dialect.Items(decode.Lookup(root, "scenarios")) {
		if decode.Lookup(s, "prompt") != nil {
			return true
		}
	}
	return false
}
