package plugineval

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// A target is the text that a grader looks at.
type target struct {
	kind string // last_message, files, file, trace or mock_calls
	path string // of a file
}

// target returns what the value of a key names; ok is false if that is unknown, which it reports.
func (s *spec) target(key string) (t target, ok bool) {
	n := s.get(key)
	switch {
	case n == nil:
		return target{kind: "last_message"}, true
	case n.Kind == yaml.MappingNode:
		t = target{dialect.TextOf(decode.Lookup(n, "source")), dialect.TextOf(decode.Lookup(n, "path"))}
		if t.kind != "file" || !filepath.IsLocal(filepath.FromSlash(t.path)) {
			s.cannot(n, "%s must name a file in the workspace", key)
			return t, false
		}
		return t, true
	}
	t.kind = dialect.TextOf(n)
	if !slices.Contains([]string{"last_message", "files", "trace", "mock_calls"}, t.kind) {
		s.cannot(n, "unknown %s %q", key, text.Clip(t.kind, 40))
		return t, false
	}
	if t.kind == "mock_calls" && len(s.mocks) == 0 {
		s.cannot(n, "the %s mock_calls needs mocks/SERVER/TOOL.md, and the case has none", key)
		return t, false
	}
	return t, true
}

// leftOut reports whether graders of the target count only if the case has no others: those of calls
// that an agent without the plugin cannot make.
func (c *testCase) leftOut(t target) bool {
	return t.kind == "mock_calls" && !slices.ContainsFunc(c.mocks, func(m mock) bool { return m.plugin == "" })
}

// traceLines are statements of JavaScript that make lines of the transcript, like those that
// `claude -p --output-format stream-json` prints.
const traceLines = `const lines = [];
const add = (type, content) => lines.push(JSON.stringify({type, message: {role: type, content: [content]}}));
const callsSkill = transcript.some(e => e.type === "tool_call" && e.name === "Skill");
for (const e of transcript) {
  if (e.type === "message" && e.role !== "user" && e.role !== "system") add("assistant", {type: "text", text: e.text});
  else if (e.type === "thought") add("assistant", {type: "thinking", thinking: e.text});
  else if (e.type === "skill" && !callsSkill) add("assistant", {type: "tool_use", name: "Skill", input: {skill: e.text}});
  else if (e.type === "tool_call") {
    add("assistant", {type: "tool_use", id: e.id, name: e.name, input: e.arguments});
    if (e.result !== null) add("user", {type: "tool_result", tool_use_id: e.id, content: e.result, is_error: e.status === "failed" || undefined});
  }
}
lines.push(JSON.stringify({type: "result", result: output}));
`

// shownLines is the number of lines at each end of the transcript that judges see.
const shownLines = 12

// callLines returns statements of JavaScript that make a line for each call of a mocked tool. Agents
// put the name of the server before that of the tool, in different ways.
func callLines(mocks []mock) string {
	rows := make([]string, len(mocks))
	for i, m := range mocks {
		rows[i] = fmt.Sprintf("[%s, %s, %s]", js(m.server), js(m.tool), js(m.name()))
	}
	return "const mocks = [" + strings.Join(rows, ", ") + `];
const plain = s => s.replace(/[^A-Za-z0-9]/g, "_").toLowerCase();
const mockOf = name => mocks.filter(([server, tool]) => name === tool ||
  name.endsWith(tool) && "_-./:".includes(name[name.length - tool.length - 1]) && plain(name.slice(0, -tool.length)).includes(plain(server)))
  .sort((a, b) => b[1].length - a[1].length || b[0].length - a[0].length)[0];
const lines = tool_calls.flatMap(c => mockOf(c.name) ? [JSON.stringify({tool: mockOf(c.name)[2], input: c.arguments, output: c.result})] : []);
`
}

// transform returns the body of the function that makes the target of the answer; empty if graders
// look at the answer or name a file.
func (c *testCase) transform(t target, judged bool) string {
	switch {
	case t.kind == "files":
		return `return created_files.join("\n");`
	case t.kind == "mock_calls":
		return callLines(c.mocks) + `return lines.join("\n");`
	case t.kind == "trace" && judged:
		return traceLines + fmt.Sprintf(`return lines.filter((_, i) => i < %d || i >= lines.length - %[1]d).join("\n");`, shownLines)
	case t.kind == "trace":
		return traceLines + `return lines.join("\n");`
	}
	return ""
}

// focusNotes explain to a judge the text that replaces the answer.
var focusNotes = map[string]string{
	"files":      "The output is the list of the files that the agent created.",
	"trace":      "The output is the transcript of the agent, a JSON object per line; of a long one, only its start and its end.",
	"mock_calls": "The output is the list of the agent's calls of mocked tools, with inputs and outputs, a JSON object per line.",
}
