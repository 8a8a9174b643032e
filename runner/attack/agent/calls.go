package agent

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"

	"waza/eval"
)

// maxCalls limits the calls that a forger invents.
const maxCalls = 200

// wantedCalls returns the tool calls that the graders of a task seem to want.
func wantedCalls(t *eval.Task) []call {
	var calls []call
	if t.Expected != nil {
		if t.Expected.ToolCalls != nil {
			for _, c := range t.Expected.ToolCalls.Required {
				calls = append(calls, call{c.Tool, c.Arguments})
			}
		}
		if t.Expected.Behavior != nil {
			for _, tool := range t.Expected.Behavior.RequiredTools {
				calls = append(calls, call{Tool: tool})
			}
		}
		for _, o := range t.Expected.Outcomes {
			calls = append(calls, call{Tool: o.CalledTool()})
		}
	}
	for _, g := range t.AllGraders() {
		encoded, err := json.Marshal(g.Options)
		if err != nil {
			continue
		}
		var options any
		if json.Unmarshal(encoded, &options) == nil {
			calls = append(calls, callsIn(options, false)...)
		}
	}
	for i := range calls {
		calls[i].Tool = example(calls[i].Tool)
	}
	calls = slices.DeleteFunc(calls, func(c call) bool { return c.Tool == "" })
	return calls[:min(len(calls), maxCalls)]
}

// callsIn returns calls that meet the conditions in options, and calls of the texts that are probably
// names of tools. named means that a key above the value speaks of tools.
func callsIn(v any, named bool) (calls []call) {
	switch v := v.(type) {
	case string:
		if named {
			return []call{{Tool: v}}
		}
	case []any:
		for _, one := range v {
			calls = append(calls, callsIn(one, named)...)
		}
	case map[string]any:
		if c := conditioned(v); c.Tool != "" {
			return []call{c}
		}
		for key, one := range v {
			key = strings.ToLower(key)
			if strings.Contains(key, "forbidden") || strings.Contains(key, "reject") || strings.Contains(key, "allow") {
				continue
			}
			calls = append(calls, callsIn(one, strings.Contains(key, "tool") || strings.Contains(key, "action") || named && key == "name")...)
		}
	}
	return calls
}

// conditioned returns a call that meets conditions on a tool and its arguments, as graders have them; without
// a tool if v contains none.
func conditioned(v map[string]any) call {
	text := func(key string) string {
		value, _ := v[key].(string)
		return value
	}
	c := call{Tool: cmp.Or(text("Tool"), text("Pattern")), Arguments: map[string]any{}}
	for key, argument := range map[string]string{"CommandPattern": "command", "PathPattern": "path", "SkillPattern": "skill", "ArgsPattern": "text"} {
		if pattern := text(key); pattern != "" {
			c.Tool, c.Arguments[argument] = cmp.Or(c.Tool, "bash"), example(pattern)
		}
	}
	if arguments, _ := v["Arguments"].(map[string]any); arguments != nil {
		maps.Copy(c.Arguments, arguments)
	}
	conditions, _ := v["Args"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		condition, _ := conditions[name].(map[string]any)
		at, parts := c.Arguments, strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			inner, ok := at[part].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[part] = inner
			}
			at = inner
		}
		at[parts[len(parts)-1]] = meeting(condition)
	}
	return c
}

// meeting returns a value that meets a condition of a grader on an argument.
func meeting(condition map[string]any) any {
	if v := condition["Equals"]; v != nil {
		return v
	}
	if v, _ := condition["Contains"].(string); v != "" {
		return v
	}
	if v, _ := condition["Regex"].(string); v != "" {
		return example(v)
	}
	limits, _ := condition["Range"].(map[string]any)
	for _, limit := range []struct {
		key    string
		beyond float64
	}{{"GTE", 0}, {"LTE", 0}, {"GT", 1}, {"LT", -1}} {
		if v, ok := limits[limit.key].(float64); ok {
			return v + limit.beyond
		}
	}
	return "ok"
}

// example returns a text that matches a regular expression, or the text itself if it cannot be parsed.
func example(pattern string) string {
	if !strings.ContainsAny(pattern, `\^$*+?()[]{}|`) {
		return pattern
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return pattern
	}
	var b strings.Builder
	exemplify(&b, parsed)
	return b.String()
}

// maxExample limits the bytes of an example, because a pattern can repeat repetitions.
const maxExample = 4 << 10

func exemplify(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > maxExample {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(member(re.Rune))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			exemplify(b, sub)
		}
	case syntax.OpAlternate, syntax.OpCapture, syntax.OpPlus:
		exemplify(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			exemplify(b, re.Sub[0])
		}
	}
}

// member returns a character of a class, which is a list of ranges: a letter or digit if it has any.
func member(ranges []rune) rune {
	for _, r := range "a0A_" {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return r
			}
		}
	}
	return ranges[0]
}
