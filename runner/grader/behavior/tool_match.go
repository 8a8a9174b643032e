package behavior

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
	"waza/runner/record"
)

// A ToolSpec matches tool calls that meet all given conditions. In YAML it is a map, or a text,
// which is short for tool. Patterns match in any letter case.
type ToolSpec struct {
	// Name of the tool, in any letter case; a text instead of the map means the same. It matches
	// whole names only: read does not match thread_list. A regular expression (RE2) also matches
	// whole names (mcp__.*, read|write), unless it contains ^, $ or \b (^mcp__).
	Tool string `yaml:"tool"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the argument command, cmd or script.
	CommandPattern string `yaml:"command_pattern"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the argument path, file_path, filePath
	// or filename.
	PathPattern string `yaml:"path_pattern"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the argument skill or skill_name.
	SkillPattern string `yaml:"skill_pattern"`
	// Conditions on arguments, by their names; a name with dots leads into maps. A value that is
	// not a map must be equal.
	Args map[string]ArgMatcher `yaml:"args"`
}

// UnmarshalYAML accepts a map or a text.
func (t *ToolSpec) UnmarshalYAML(n *yaml.Node) error {
	type plain ToolSpec // without this method
	return textOrMap(n, &t.Tool, (*plain)(t), "the name of a tool, or a map with the key tool")
}

func (t *ToolSpec) check(c *eval.Check, at decode.Path) {
	below := func(elems ...any) decode.Path { return append(at[:len(at):len(at)], elems...) }
	if strings.TrimSpace(t.Tool) == "" && t.CommandPattern == "" && t.PathPattern == "" && t.SkillPattern == "" && len(t.Args) == 0 {
		c.Errorf(at, decode.CodeMissingField, "%s: tool is missing", at)
	}
	if c.Regexp(below("tool"), t.Tool) != nil && likeGlob().MatchString(t.Tool) {
		c.Warnf(below("tool"), decode.CodeBadRegex, "%s: %q is a regular expression, in which * repeats the character before it; "+
			"write .* for any characters", below("tool"), t.Tool)
	}
	c.Regexp(below("command_pattern"), t.CommandPattern)
	c.Regexp(below("path_pattern"), t.PathPattern)
	c.Regexp(below("skill_pattern"), t.SkillPattern)
	for _, name := range slices.Sorted(maps.Keys(t.Args)) {
		m := t.Args[name]
		m.check(c, below("args", name))
	}
}

// A toolTest is a ToolSpec ready for use.
type toolTest struct {
	label    string
	name     *regexp.Regexp // nil means any
	patterns []argPattern
	args     map[string]argTest
}

// An argPattern is a pattern on an argument that has several names.
type argPattern struct {
	names []string
	re    *regexp.Regexp
}

func (t *ToolSpec) compile() (*toolTest, error) {
	test := &toolTest{label: t.label(), args: map[string]argTest{}}
	for _, p := range []struct {
		pattern string
		names   []string
	}{
		{t.CommandPattern, []string{"command", "cmd", "script"}},
		{t.PathPattern, []string{"path", "file_path", "filePath", "filename"}},
		{t.SkillPattern, []string{"skill", "skill_name"}},
	} {
		if p.pattern == "" {
			continue
		}
		re, err := match.Pattern(p.pattern, true)
		if err != nil {
			return nil, err
		}
		test.patterns = append(test.patterns, argPattern{p.names, re})
	}
	if t.Tool != "" {
		re, err := compileToolName(t.Tool)
		if err != nil {
			return nil, err
		}
		test.name = re
	}
	for name, m := range t.Args {
		arg, err := m.compile()
		if err != nil {
			return nil, fmt.Errorf("args.%s: %w", name, err)
		}
		test.args[name] = arg
	}
	return test, nil
}

// likeGlob finds a star in a name that is meant as "any characters".
var likeGlob = text.Pattern(`\w\*`)

// compileToolName compiles the name of a tool, or a pattern of names. It matches the whole name,
// in any letter case. A pattern with an anchor or a word boundary can match a part of the name.
func compileToolName(text string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if hasAnchor(tree) {
		return match.Pattern(text, true)
	}
	// The text itself can also be a name, such as functions[0].bash.
	return regexp.Compile(`(?i)\A(?:` + regexp.QuoteMeta(text) + `|(?:` + text + `))\z`)
}

// hasAnchor reports whether a pattern contains an anchor or a word boundary.
func hasAnchor(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(tree.Sub, hasAnchor)
}

// label describes for people which calls match.
func (t *ToolSpec) label() string {
	parts := []string{t.Tool}
	for _, p := range [][2]string{{"command", t.CommandPattern}, {"path", t.PathPattern}, {"skill", t.SkillPattern}} {
		if p[1] != "" {
			parts = append(parts, fmt.Sprintf("%s /%s/", p[0], p[1]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Args)) {
		parts = append(parts, "args."+name)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// match returns a complaint if a call does not match. named reports whether its name matches.
func (t *toolTest) match(c *toolCall) (complaint string, named bool) {
	if t.name != nil && !t.name.MatchString(c.name) {
		return "different tool", false
	}
	for _, p := range t.patterns {
		v, ok := c.anyOf(p.names)
		if !ok {
			return fmt.Sprintf("no argument %s", p.names[0]), true
		}
		if !p.re.MatchString(argText(v)) {
			return fmt.Sprintf("%s is %s", p.names[0], grader.Excerpt(argText(v))), true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.args)) {
		v, ok := c.argument(name)
		if !ok {
			return fmt.Sprintf("no argument %s", name), true
		}
		if why := t.args[name](v); why != "" {
			return fmt.Sprintf("argument %s: %s", name, why), true
		}
	}
	return "", true
}

// first returns the first call that matches. Otherwise near describes why the last call
// with a matching name does not match.
func (t *toolTest) first(calls []toolCall) (found *toolCall, near string) {
	for i := range calls {
		why, named := t.match(&calls[i])
		if why == "" {
			return &calls[i], ""
		}
		if named {
			near = fmt.Sprintf("; a call of %s does not match: %s", calls[i].name, why)
		}
	}
	return nil, near
}

// A toolCall is a tool call with its arguments decoded.
type toolCall struct {
	name string
	args any
	text string // the arguments as JSON
	// exact holds the arguments with numbers as written; set when first needed.
	exact any
}

// decodedCalls decodes the tool calls of a trial. Skills that the executor reports separately
// follow them as calls of a tool "skill".
func decodedCalls(s *grader.Subject) []toolCall {
	calls := make([]toolCall, 0, len(s.ToolCalls)+len(s.Skills))
	for i := range s.ToolCalls {
		calls = append(calls, decodedCall(&s.ToolCalls[i]))
	}
	for _, skill := range s.Skills {
		calls = append(calls, toolCall{name: "skill", args: map[string]any{"skill": skill}, text: jsonText(map[string]any{"skill": skill})})
	}
	return calls
}

func decodedCall(c *record.ToolCall) toolCall {
	call := toolCall{name: c.Name, text: string(c.Arguments)}
	if json.Unmarshal(c.Arguments, &call.args) != nil {
		call.args = string(c.Arguments)
	}
	// Some models give the arguments as a JSON text within JSON.
	if inner, ok := call.args.(string); ok {
		var decoded map[string]any
		if json.Unmarshal([]byte(match.WithoutBOM(inner)), &decoded) == nil {
			call.args, call.text = decoded, inner
		}
	}
	return call
}

func (c *toolCall) anyOf(names []string) (any, bool) {
	for _, name := range names {
		if v, ok := c.argument(name); ok {
			return v, true
		}
	}
	return nil, false
}

// argument returns an argument by its name, or by a path with dots.
func (c *toolCall) argument(name string) (any, bool) { return argumentOf(c.args, name) }

// exactArgument is like argument, but keeps numbers as written.
func (c *toolCall) exactArgument(name string) (any, bool) {
	if c.exact == nil {
		c.exact, _ = exactJSON(match.WithoutBOM(c.text))
	}
	return argumentOf(c.exact, name)
}

func argumentOf(all any, name string) (any, bool) {
	args, ok := all.(map[string]any)
	if !ok {
		return nil, false
	}
	if v, ok := args[name]; ok {
		return v, true
	}
	var at any = args
	for key := range strings.SplitSeq(name, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
	}
	return at, true
}
