// Package promptfoo translates the promptfooconfig.yaml of promptfoo. Its rules are those of
// site/docs/configuration in promptfoo/promptfoo.
//
// The package translates prompts, tests with variables, and assertions, and notes the calls of the programs
// that return parts of them. It reports everything else that could change a verdict as an error.
package promptfoo

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name:       "promptfoo",
		Named:      isNamed,
		Recognizes: func(root *yaml.Node) bool { return has(root, providerNames) || has(root, caseNames) },
		Placed: func(file string, root *yaml.Node) bool {
			return isNamed(file) || decode.Lookup(root, "tasks") == nil && has(root, providerNames) && has(root, caseNames)
		},
		Refuses: func(*yaml.Node) string {
			return "this is no configuration of promptfoo: it has no providers, prompts and tests"
		},
		Translate: translate,
		Target:    "promptfoo",
		FileName:  writtenName,
		Write:     write,
	}
}

// Keys of a configuration: one with the providers, and those of which most have one.
var (
	providerNames = []string{"providers", "targets"}
	caseNames     = []string{"prompts", "tests", "redteam", "scenarios", "defaultTest"}
)

func isNamed(file string) bool {
	base, ext := path.Base(filepath.ToSlash(file)), path.Ext(file)
	return strings.HasPrefix(base, "promptfooconfig") && (ext == ".yaml" || ext == ".yml" || ext == ".json")
}

// has reports whether a map has one of several keys.
func has(root *yaml.Node, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return decode.Lookup(root, key) != nil })
}
