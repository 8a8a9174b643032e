package behavior

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/jsonwalk"
	"waza/eval/pattern"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
)

// An ArgMatcher is a condition on an argument of a tool call. In YAML it is a map with one of
// the keys below, or a plain value, which is short for equals.
type ArgMatcher struct {
	// Value that the argument must equal. A plain value instead of the map means the same.
	Equals any `yaml:"equals"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the argument.
	// An argument that is not a text is matched as JSON.
	Regex string `yaml:"regex"`
	// Text that the argument must contain, in the same letter case. An argument that is not a
	// text is searched as JSON.
	Contains string `yaml:"contains"`
	// Limits of a number.
	Range *ArgRange `yaml:"range"`
	// JSON Schema that the argument must satisfy.
	Schema map[string]any `yaml:"json_schema"`

	kind string // the given key
}

// An ArgRange limits a number; absent limits are not checked.
type ArgRange struct {
	// At least.
	GTE *float64 `yaml:"gte"`
	// At most.
	LTE *float64 `yaml:"lte"`
	// More than.
	GT *float64 `yaml:"gt"`
	// Less than.
	LT *float64 `yaml:"lt"`
}

var matcherKeys = []string{"equals", "regex", "contains", "range", "json_schema"}

// UnmarshalYAML accepts a map or a plain value.
func (m *ArgMatcher) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		m.kind = "equals"
		return n.Decode(&m.Equals)
	}
	if len(n.Content) != 2 {
		return fmt.Errorf("must have one of %s", strings.Join(matcherKeys, ", "))
	}
	key := n.Content[0].Value
	if !slices.Contains(matcherKeys, key) {
		return fmt.Errorf("unknown matcher %q; known matchers: %s", key, strings.Join(matcherKeys, ", "))
	}
	type plain ArgMatcher // without this method
	if err := strictDecode(n, (*plain)(m)); err != nil {
		return err
	}
	m.kind = key
	return nil
}

// UnmarshalYAML rejects unknown keys.
func (r *ArgRange) UnmarshalYAML(n *yaml.Node) error {
	type plain ArgRange // without this method
	return strictDecode(n, (*plain)(r))
}

// textOrMap decodes a text into a string, or a map into a struct. forms describes both.
func textOrMap(n *yaml.Node, text *string, whole any, forms string) error {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Decode(text)
	case yaml.MappingNode:
		return strictDecode(n, whole)
	}
	return errors.New("must be " + forms)
}

// strictDecode decodes a map into a struct and rejects unknown keys. Without that, a misspelled
// condition would always be met.
func strictDecode(n *yaml.Node, out any) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("must be a map")
	}
	known := decode.Keys(out)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if key == "<<" || slices.Contains(known, key) {
			continue
		}
		hint := ""
		if near := decode.Nearest(key, known); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Errorf("unknown key %q; known keys: %s%s", key, strings.Join(known, ", "), hint)
	}
	return n.Decode(out)
}

// check reports faults of a matcher, whose pattern is in the given syntax.
func (m *ArgMatcher) check(c *eval.Check, at decode.Path, syntax pattern.Syntax) {
	if m.kind == "regex" {
		c.Pattern(append(at[:len(at):len(at)], "regex"), syntax, m.Regex)
	}
	switch {
	case m.kind == "json_schema":
		if _, err := match.Schema(m.Schema, "", c.ReadFile); err != nil {
			c.Errorf(append(at[:len(at):len(at)], "json_schema"), decode.CodeBadSchema, "%s: %s", at, err)
		}
	case m.kind == "regex" && m.Regex == "", m.kind == "contains" && m.Contains == "":
		c.Errorf(at, decode.CodeInvalidValue, "%s is empty and would match everything", at)
	case m.kind == "range" && (m.Range == nil || *m.Range == ArgRange{}):
		c.Errorf(at, decode.CodeInvalidValue, "%s: range needs gte, lte, gt or lt", at)
	}
}

// An argTest tests the value of an argument. It returns a complaint, or an empty text. The error means
// that a search took too long.
type argTest func(value any) (complaint string, err error)

// compile compiles the matcher, whose pattern is in the given syntax.
func (m *ArgMatcher) compile(syntax pattern.Syntax) (argTest, error) {
	if m.kind == "regex" {
		test, err := compileText(syntax, m.Regex)
		return func(v any) (string, error) {
			if ok, err := test(argText(v)); ok || err != nil {
				return "", err
			}
			return fmt.Sprintf("%s does not match /%s/", grader.Excerpt(argText(v)), m.Regex), nil
		}, err
	}
	test, err := m.condition()
	return func(v any) (string, error) { return test(v), nil }, err
}

// condition returns the test of a matcher without a pattern. It returns a complaint, or an empty text.
func (m *ArgMatcher) condition() (func(value any) string, error) {
	switch m.kind {
	case "contains":
		return func(v any) string {
			if strings.Contains(argText(v), m.Contains) {
				return ""
			}
			return fmt.Sprintf("%s does not contain %q", grader.Excerpt(argText(v)), m.Contains)
		}, nil
	case "range":
		return m.Range.test, nil
	case "json_schema":
		schema, err := match.Schema(m.Schema, "", match.ReadSchema)
		return func(v any) string { return schemaComplaint(schema, v) }, err
	default:
		want := normalJSON(m.Equals)
		return func(v any) string {
			if reflect.DeepEqual(want, normalJSON(v)) {
				return ""
			}
			return fmt.Sprintf("is %s, not %s", text.Clip(jsonText(v), grader.ExcerptBytes), text.Clip(jsonText(m.Equals), grader.ExcerptBytes))
		}, nil
	}
}

func (r *ArgRange) test(v any) string {
	n, ok := normalJSON(v).(float64)
	switch {
	case !ok:
		return text.Clip(jsonText(v), grader.ExcerptBytes) + " is not a number"
	case r.GTE != nil && n < *r.GTE:
		return fmt.Sprintf("%v is less than %v", n, *r.GTE)
	case r.GT != nil && n <= *r.GT:
		return fmt.Sprintf("%v is not more than %v", n, *r.GT)
	case r.LTE != nil && n > *r.LTE:
		return fmt.Sprintf("%v is more than %v", n, *r.LTE)
	case r.LT != nil && n >= *r.LT:
		return fmt.Sprintf("%v is not less than %v", n, *r.LT)
	}
	return ""
}

func schemaComplaint(schema *jsonschema.Schema, v any) string {
	err := schema.Validate(normalJSON(v))
	var ve *jsonschema.ValidationError
	switch {
	case errors.As(err, &ve):
		return strings.Join(match.Violations(ve), "; ")
	case err != nil:
		return err.Error()
	}
	return ""
}

// normalJSON converts a value to the types of encoding/json, so that 5 in YAML equals 5 in JSON.
func normalJSON(v any) any {
	var out any
	if json.Unmarshal([]byte(jsonText(v)), &out) != nil {
		return v
	}
	return out
}

func jsonText(v any) string {
	data, err := jsonwalk.Encode(jsonwalk.Plain(v))
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// argText returns the text of a value: a string itself, anything else as JSON.
func argText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return jsonText(v)
}
