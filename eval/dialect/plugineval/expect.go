package plugineval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// jsonTypes are the names of types that mocks expect.
var jsonTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// expectSchema returns the JSON Schema of the arguments that a mock expects: a map from paths with dots to the name of a type, a
// pattern between slashes, a value, or a list of values.
func expectSchema(expect *yaml.Node) (*yaml.Node, error) {
	if expect = decode.Follow(expect); expect == nil || expect.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("expect must be a map from arguments to what they must be, got %s", decode.Describe(expect))
	}
	schema := dialect.NewMap(nil)
	for _, p := range dialect.Pairs(expect) {
		place := schema
		keys := strings.Split(p.Key.Value, ".")
		for i, key := range keys {
			if key == "" || strings.Trim(key, "0123456789") == "" || strings.ContainsAny(key, "[]*") {
				return nil, fmt.Errorf("expect: %s is not supported: it must be names with dots between", text.Clip(p.Key.Value, 60))
			}
			place = argumentOf(place, key)
			if i < len(keys)-1 {
				place.Set("type", dialect.Scalar(nil, "object"))
			}
		}
		if err := expectValue(place, p.Value); err != nil {
			return nil, fmt.Errorf("expect: %s: %w", text.Clip(p.Key.Value, 60), err)
		}
	}
	return schema.Node, nil
}

// argumentOf returns the schema of a required member of an object with a schema.
func argumentOf(object dialect.Map, name string) dialect.Map {
	properties := dialect.Map{Node: decode.Lookup(object.Node, "properties")}
	if properties.Node == nil {
		properties = dialect.NewMap(nil)
		object.Set("properties", properties.Node)
		object.Set("required", dialect.List(nil))
	}
	member := dialect.Map{Node: decode.Lookup(properties.Node, name)}
	if member.Node == nil {
		member = dialect.NewMap(nil)
		properties.Set(name, member.Node)
		required := decode.Lookup(object.Node, "required")
		required.Content = append(required.Content, dialect.Scalar(nil, name))
	}
	return member
}

// expectValue adds what a value must be to its schema.
func expectValue(schema dialect.Map, want *yaml.Node) error {
	want = decode.Follow(want)
	said := dialect.TextOf(want)
	switch {
	case want.Kind == yaml.SequenceNode:
		schema.Set("enum", want)
	case want.Kind == yaml.MappingNode:
		return fmt.Errorf("a map is not supported: name its members with dots")
	case decode.IsText(want) && slices.Contains(jsonTypes, said):
		schema.Set("type", dialect.Scalar(nil, said))
	case decode.IsText(want) && isPattern(said):
		expr, err := goPattern(said)
		if err != nil {
			return err
		}
		schema.Set("type", dialect.Scalar(nil, "string"))
		schema.Set("pattern", dialect.Scalar(nil, expr))
	default:
		schema.Set("const", want)
	}
	return nil
}

// isPattern reports whether a text is a pattern of JavaScript between slashes, with flags. A path is not: it has other slashes,
// or its last part is no flags. Flags without a use for one match do not count, such as those of "/srv/guy".
func isPattern(said string) bool {
	return slashed().MatchString(said) && !twice(said[strings.LastIndex(said, "/")+1:])
}

// slashed matches a pattern between slashes; a slash in it is escaped, or in brackets.
var slashed = text.Pattern(`^/(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[gimsu]*$`)

// twice reports whether a letter occurs twice.
func twice(letters string) bool {
	for i, letter := range letters {
		if strings.ContainsRune(letters[:i], letter) {
			return true
		}
	}
	return false
}

// goPattern returns the pattern for RE2.
func goPattern(said string) (string, error) {
	end := strings.LastIndex(said, "/")
	expr, flags := said[1:end], ""
	for _, flag := range said[end+1:] {
		if strings.ContainsRune("ims", flag) && !strings.ContainsRune(flags, flag) {
			flags += string(flag)
		}
	}
	expr = strings.ReplaceAll(expr, `\/`, "/")
	if flags != "" {
		expr = "(?" + flags + ")" + expr
	}
	if _, err := regexp.Compile(expr); err != nil {
		return "", fmt.Errorf("the pattern %s is not supported: %s", text.Clip(said, 100), text.RegexpFault(err))
	}
	return expr, nil
}
