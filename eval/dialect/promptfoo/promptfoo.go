// Package promptfoo translates the promptfooconfig.yaml of promptfoo. Its rules are those of
// site/docs/configuration in promptfoo/promptfoo.
//
// The package translates prompts, tests with variables, and assertions, and notes the calls of the programs
// that return parts of them. It reports everything else that could change a verdict as an error.
package promptfoo

import (
	"path"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name: "promptfoo",
		Named: func(file string) bool {
			base, ext := path.Base(file), path.Ext(file)
			return strings.HasPrefix(base, "promptfooconfig") && (ext == ".yaml" || ext == ".yml" || ext == ".json")
		},
		Recognizes: func(root *yaml.Node) bool {
			return decode.Lookup(root, "prompts") != nil &&
				(decode.Lookup(root, "providers") != nil || decode.Lookup(root, "targets") != nil)
		},
		Refuses: func(*yaml.Node) string {
			return "this is no suite of promptfoo: it needs prompts, and providers or targets"
		},
		Translate: translate,
		Target:    "promptfoo",
		FileName:  writtenName,
		Write:     write,
	}
}
