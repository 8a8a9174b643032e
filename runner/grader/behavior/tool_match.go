package behavior

import (
	"bytes"
	"cmp"
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
	"waza/eval/pattern"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
	"waza/runner/record"
)

// A ToolSpec matches tool calls that meet all given conditions. In YAML it is a map, or a text,
// which is short for tool. Patterns match in any letter case.
type ToolSpec struct {
	// Name of the tool, in any letter case; a text instead of the map means the same. It matches
	// whole names only: read does not match thread_list. A regular expression (RE2) also matches
	// whole names (mcp__.*, read|write), unless it contains ^, $ or \b (^mcp__). A skill that the executor
	// reports apart from tool calls is a call of the tool skill, but only for names with the word skill.
	Tool string `yaml:"tool"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the argument command, cmd or script.
	CommandPattern string `yaml:"command_pattern"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the argument path, file_path, filePath
	// or filename.
	PathPattern string `yaml:"path_pattern"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the argument skill or skill_name.
	SkillPattern string `yaml:"skill_pattern"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the arguments as JSON text
	// without white space between values.
	ArgsPattern string `yaml:"args_pattern" json:",omitempty"`
	// Regular expression (RE2), in any letter case, that must match somewhere in the result of the call: in its
	// text, or in any other value as JSON. A call without a reported result does not match.
	ResultPattern string `yaml:"result_pattern" json:",omitempty"`
	// Conditions on arguments, by their names; a name with dots leads into maps. A value that is
	// not a map must be equal.
	Args map[string]ArgMatcher `yaml:"args"`
	// Minimum number of such calls, for expected calls only; 1 when absent.
	Min *int `yaml:"min" json:",omitempty" jsonschema:"minimum=0"`
	// Maximum number of such calls, for expected calls only; any number when absent. Together with min: 0,
	// max: 0 forbids such calls.
	Max *int `yaml:"max" json:",omitempty" jsonschema:"minimum=0"`
}

// UnmarshalYAML accepts a map or a text.
func (t *ToolSpec) UnmarshalYAML(n *yaml.Node) error {
	type plain ToolSpec // without this method
	return textOrMap(n, &t.Tool, (*plain)(t), "the name of a tool, or a map with the key tool")
}

// check reports faults. Patterns are in the given syntax.
func (t *ToolSpec) check(c *eval.Check, at decode.Path, syntax pattern.Syntax) {
	below := func(elems ...any) decode.Path { return append(at[:len(at):len(at)], elems...) }
	if strings.TrimSpace(t.Tool) == "" && t.CommandPattern+t.PathPattern+t.SkillPattern+t.ArgsPattern+t.ResultPattern == "" && len(t.Args) == 0 {
		c.Errorf(at, decode.CodeMissingField, "%s: tool is missing", at)
	}
	if least := t.least(); t.Max != nil && *t.Max < least {
		c.Errorf(below("max"), decode.CodeInvalidValue, "%s: max %d is less than min %d, which is 1 when absent", at, *t.Max, least)
	}
	if syntax == pattern.JavaScript {
		c.Pattern(below("tool"), syntax, t.Tool)
	} else if c.Regexp(below("tool"), t.Tool) != nil && likeGlob().MatchString(t.Tool) {
		c.Warnf(below("tool"), decode.CodeBadRegex, "%s: %q is a regular expression, in which * repeats the character before it; "+
			"write .* for any characters", below("tool"), t.Tool)
	}
	c.Pattern(below("command_pattern"), syntax, t.CommandPattern)
	c.Pattern(below("path_pattern"), syntax, t.PathPattern)
	c.Pattern(below("skill_pattern"), syntax, t.SkillPattern)
	c.Pattern(below("args_pattern"), syntax, t.ArgsPattern)
	c.Pattern(below("result_pattern"), syntax, t.ResultPattern)
	for _, name := range slices.Sorted(maps.Keys(t.Args)) {
		m := t.Args[name]
		m.check(c, below("args", name), syntax)
	}
}

// checkUncounted reports limits on the number of calls where calls are not counted.
func (t *ToolSpec) checkUncounted(c *eval.Check, at decode.Path) {
	if t.Min != nil || t.Max != nil {
		c.Errorf(at, decode.CodeInvalidValue, "%s: min and max apply only to expected calls without ordered", at)
	}
}

// least returns the minimum number of calls.
func (t *ToolSpec) least() int {
	if t.Min == nil {
		return 1
	}
	return *t.Min
}

// A textTest reports whether a text matches a pattern. The error means that the search took too long.
type textTest func(in string) (bool, error)

// compileText compiles a pattern: one of RE2 in any letter case, or one of JavaScript as it is.
func compileText(syntax pattern.Syntax, expression string) (textTest, error) {
	if syntax == pattern.JavaScript {
		p, err := pattern.Compile(syntax, expression)
		return func(in string) (bool, error) {
			_, found, err := p.Find(in)
			if err != nil {
				err = executor.Permanent(err)
			}
			return found, err
		}, err
	}
	re, err := match.Pattern(expression, true)
	return func(in string) (bool, error) { return re.MatchString(in), nil }, err
}

// A toolTest is a ToolSpec ready for use.
type toolTest struct {
	label       string
	name        textTest // nil means any
	skills      bool     // also matches skills that are reported apart from tool calls
	patterns    []argPattern
	args        map[string]argTest
	all         textTest // on the arguments as JSON; nil means any
	result      textTest // nil means any
	least, most int      // numbers of calls; most is negative for any number
}

// An argPattern is a pattern on an argument that has several names.
type argPattern struct {
	names []string
	test  textTest
}

// compile compiles the patterns, which are in the given syntax.
func (t *ToolSpec) compile(syntax pattern.Syntax) (*toolTest, error) {
	test := &toolTest{label: t.label(), args: map[string]argTest{}, least: t.least(), most: -1}
	test.skills = t.Tool == "" || strings.Contains(strings.ToLower(t.Tool), skillTool)
	if t.Max != nil {
		test.most = *t.Max
	}
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
		compiled, err := compileText(syntax, p.pattern)
		if err != nil {
			return nil, err
		}
		test.patterns = append(test.patterns, argPattern{p.names, compiled})
	}
	var err error
	if t.Tool != "" && syntax == pattern.JavaScript {
		test.name, err = compileText(syntax, t.Tool)
	} else if t.Tool != "" {
		test.name, err = compileToolName(t.Tool)
	}
	if err != nil {
		return nil, err
	}
	if t.ArgsPattern != "" {
		if test.all, err = compileText(syntax, t.ArgsPattern); err != nil {
			return nil, err
		}
	}
	if t.ResultPattern != "" {
		if test.result, err = compileText(syntax, t.ResultPattern); err != nil {
			return nil, err
		}
	}
	for name, m := range t.Args {
		arg, err := m.compile(syntax)
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
func compileToolName(text string) (textTest, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if hasAnchor(tree) {
		return compileText(pattern.RE2, text)
	}
	// The text itself can also be a name, such as functions[0].bash.
	re, err := regexp.Compile(`(?i)\A(?:` + regexp.QuoteMeta(text) + `|(?:` + text + `))\z`)
	return func(in string) (bool, error) { return re.MatchString(in), nil }, err
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
	for _, p := range [][2]string{{"command", t.CommandPattern}, {"path", t.PathPattern}, {"skill", t.SkillPattern}, {"arguments", t.ArgsPattern}, {"result", t.ResultPattern}} {
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
func (t *toolTest) match(c *toolCall) (complaint string, named bool, err error) {
	if c.apart && !t.skills {
		return "different tool", false, nil
	}
	if t.name != nil {
		if ok, err := t.name(c.name); !ok || err != nil {
			return "different tool", false, err
		}
	}
	for _, p := range t.patterns {
		v, ok := c.anyOf(p.names)
		if !ok {
			return fmt.Sprintf("no argument %s", p.names[0]), true, nil
		}
		if ok, err := p.test(argText(v)); !ok || err != nil {
			return fmt.Sprintf("%s is %s", p.names[0], grader.Excerpt(argText(v))), true, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.args)) {
		v, ok := c.argument(name)
		if !ok {
			return fmt.Sprintf("no argument %s", name), true, nil
		}
		if why, err := t.args[name](v); why != "" || err != nil {
			return fmt.Sprintf("argument %s: %s", name, why), true, err
		}
	}
	if t.all != nil {
		if ok, err := t.all(c.compact()); !ok || err != nil {
			return "the arguments are " + grader.Excerpt(c.text), true, err
		}
	}
	if t.result != nil && c.result == nil {
		return "it has no result", true, nil
	}
	if t.result != nil {
		result := record.PlainText(c.result)
		if ok, err := t.result(result); !ok || err != nil {
			return "the result is " + grader.Excerpt(result), true, err
		}
	}
	return "", true, nil
}

// names reports whether the test is about a tool of that name.
func (t *toolTest) names(tool string) bool {
	if t.name == nil {
		return false
	}
	ok, err := t.name(tool)
	return ok && err == nil
}

// first returns the index of the first call that matches, or -1. Then near describes why the last call
// with a matching name does not match.
func (t *toolTest) first(calls []toolCall) (at int, near string, err error) {
	for i := range calls {
		why, named, err := t.match(&calls[i])
		if err != nil || why == "" {
			return i, "", err
		}
		if named {
			near = fmt.Sprintf("; a call of %s does not match: %s", calls[i].name, why)
		}
	}
	return -1, near, nil
}

// count returns the number of calls that match. near is like that of first.
func (t *toolTest) count(calls []toolCall) (n int, near string, err error) {
	for len(calls) > 0 {
		at, why, err := t.first(calls)
		if near = cmp.Or(why, near); err != nil || at < 0 {
			return n, near, err
		}
		n, calls = n+1, calls[at+1:]
	}
	return n, near, nil
}

// A toolCall is a tool call with its arguments decoded.
type toolCall struct {
	name string
	args any
	text string // the arguments as JSON
	// result is JSON; nil if none is reported.
	result json.RawMessage
	// exact holds the arguments with numbers as written; set when first needed.
	exact any
	apart bool // a skill that the executor reported apart from tool calls
}

// skillTool is the name of the tool of which skills that are reported apart are calls.
const skillTool = "skill"

// decodedCalls decodes the tool calls of a trial. Skills that the executor reports separately
// follow them as calls of a tool "skill". They are no tool calls of the agent, so that a [ToolSpec] with a
// name for any tool, such as ".", does not count them.
func decodedCalls(s *grader.Subject) []toolCall {
	calls := make([]toolCall, 0, len(s.ToolCalls)+len(s.Skills))
	for i := range s.ToolCalls {
		calls = append(calls, decodedCall(&s.ToolCalls[i]))
	}
	for _, skill := range s.Skills {
		calls = append(calls, toolCall{name: skillTool, args: map[string]any{"skill": skill}, text: jsonText(map[string]any{"skill": skill}), apart: true})
	}
	return calls
}

// callsInOrder is like decodedCalls, but skills are at their places among the tool calls.
func callsInOrder(s *grader.Subject) []toolCall {
	all := decodedCalls(s)
	calls, skills := all[:len(s.ToolCalls)], all[len(s.ToolCalls):]
	ordered := make([]toolCall, 0, len(all))
	for i := range s.Transcript {
		switch e := &s.Transcript[i]; {
		case e.Type == record.EntryToolCall && e.Tool != nil && len(calls) > 0:
			ordered, calls = append(ordered, calls[0]), calls[1:]
		case e.Type == record.EntrySkill && len(skills) > 0:
			ordered, skills = append(ordered, skills[0]), skills[1:]
		}
	}
	return slices.Concat(ordered, calls, skills)
}

func decodedCall(c *record.ToolCall) toolCall {
	call := toolCall{name: c.Name, text: string(c.Arguments), result: c.Result}
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

// compact returns the arguments as JSON without white space between values, however the agent writes it.
func (c *toolCall) compact() string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(c.text)) != nil {
		return c.text
	}
	return b.String()
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
