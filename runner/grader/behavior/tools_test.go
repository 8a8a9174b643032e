package behavior

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestToolConstraint(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Using("azure-deploy"), saying("a", "b"),
		gradertest.Calling(`bash {"command": "azd UP --now"}`,
			`edit {"path": "src/a.go", "n": 5, "opts": {"deep": ["x"]}}`, "odd [1]",
			`quoted "{\"command\": \"make\"}"`))
	gradertest.RunCases(t, "tool_constraint", []gradertest.Case{
		{"by name", "expect_tools: [bash, {tool: EDIT}]", nil, trial, gradertest.Passes()},
		{"not called", "expect_tools: [bash, {tool: grep}]", nil, trial, gradertest.Scores(0.5, "no call of grep; called: bash, edit")},
		{"command", `expect_tools: [{tool: bash, command_pattern: 'azd\s+up'}]`, nil, trial, gradertest.Passes()},
		{
			"another command", `expect_tools: [{tool: bash, command_pattern: '^rm'}]`, nil, trial,
			gradertest.Scores(0, `a call of bash does not match: command is "azd UP --now"`),
		},
		{"path", `expect_tools: [{tool: edit, path_pattern: '\.go$'}]`, nil, trial, gradertest.Passes()},
		{"all on one call", `expect_tools: [{tool: bash, path_pattern: '\.go$'}]`, nil, trial, gradertest.Scores(0, "no argument path")},
		{"skill", `expect_tools: [{tool: skill, skill_pattern: deploy}]`, nil, trial, gradertest.Passes()},
		{"skill among any tools", "expect_tools: [{tool: ., max: 4}, {tool: '.*', min: 0, max: 4}]\nsyntax: javascript", nil, trial, gradertest.Passes()},
		{"skill by a pattern", "expect_tools: [{tool: '^(Skill|skill)$', max: 1}, {skill_pattern: deploy}]", nil, trial, gradertest.Passes()},
		{"no skill", "expect_tools: [{tool: 'Skill|bash', min: 0, max: 1}]", nil, trial, gradertest.Scores(0, "2 calls of Skill|bash, more than max 1")},
		{"rejected skill", `reject_tools: [{tool: skill, skill_pattern: deploy}]`, nil, trial, gradertest.Scores(0, "rejected call of skill")},
		{"rejected", `reject_tools: [{tool: bash, command_pattern: 'azd'}, sudo]`, nil, trial, gradertest.Scores(0.5, `bash with "{\"command\"`)},
		{"not rejected", `reject_tools: [{tool: bash, command_pattern: 'rm -rf'}]`, nil, trial, gradertest.Passes()},
		{"arguments in a text", `expect_tools: [{tool: quoted, command_pattern: make}]`, nil, trial, gradertest.Passes()},
		{"equals", "expect_tools: [{tool: edit, args: {n: 5, opts: {equals: {deep: [x]}}}}]", nil, trial, gradertest.Passes()},
		{"not equal", "expect_tools: [{tool: edit, args: {n: '5'}}]", nil, trial, gradertest.Scores(0, `argument n: is 5, not "5"`)},
		{"regex", "expect_tools: [{tool: edit, args: {path: {regex: ^src/}}}]", nil, trial, gradertest.Passes()},
		{
			"regex does not match", "expect_tools: [{tool: edit, args: {path: {regex: ^test/}}}]", nil, trial,
			gradertest.Scores(0, "does not match /^test//"),
		},
		{"contains", "expect_tools: [{tool: edit, args: {path: {contains: a.g}}}]", nil, trial, gradertest.Passes()},
		{"does not contain", "expect_tools: [{tool: edit, args: {path: {contains: A.G}}}]", nil, trial, gradertest.Scores(0, "does not contain")},
		{"range", "expect_tools: [{tool: edit, args: {n: {range: {gte: 5, lt: 6}}}}]", nil, trial, gradertest.Passes()},
		{"out of range", "expect_tools: [{tool: edit, args: {n: {range: {gt: 5}}}}]", nil, trial, gradertest.Scores(0, "5 is not more than 5")},
		{"range of a text", "expect_tools: [{tool: edit, args: {path: {range: {gt: 5}}}}]", nil, trial, gradertest.Scores(0, "is not a number")},
		{"schema", "expect_tools: [{tool: edit, args: {opts: {json_schema: {required: [deep]}}}}]", nil, trial, gradertest.Passes()},
		{
			"schema is not met", "expect_tools: [{tool: edit, args: {opts: {json_schema: {required: [flat]}}}}]",
			nil, trial, gradertest.Scores(0, "argument opts: (root)"),
		},
		{"path into maps", "expect_tools: [{tool: edit, args: {opts.deep: {contains: x}}}]", nil, trial, gradertest.Passes()},
		{"no such argument", "expect_tools: [{tool: edit, args: {zzz: 1}}]", nil, trial, gradertest.Scores(0, "no argument zzz")},
		{"allowed", "allow_only: [{tool: Bash}, edit, odd, 'mcp:quoted']", nil, trial, gradertest.Passes()},
		{
			"allowed by another name",
			"allow_only: [{tool: 'builtin:runCommand'}, {tool: fileWrite}, {tool: odd}, {tool: 'custom:quoted'}]",
			nil, trial, gradertest.Passes(),
		},
		{
			"not allowed", "allow_only: [{tool: bash}, {tool: odd}]\nexpect_tools: [bash]", nil, trial,
			gradertest.Scores(0.5, "not allowed: edit, quoted; allowed: bash, odd"),
		},
		{"none allowed", "allow_only: []", nil, trial, gradertest.Scores(0, "no tool is allowed; called: bash")},
		{"none called", "allow_only: []", nil, gradertest.Subject(""), gradertest.Passes()},
		{"turns", "max_turns: 1", nil, trial, gradertest.Scores(0, "2 turns")},
		{"tokens unknown", "max_tokens: 1", nil, trial, gradertest.Errors("no token usage")},
	})
	gradertest.RunOptions(t, "tool_constraint", []gradertest.OptionCase{
		{"well", "expect_tools: [bash]", "", nil},
		{"nothing", "{}", "checks-nothing: give expect_tools", nil},
		{"nothing is allowed", "allow_only: []", "", nil},
		{"null allows all", "allow_only:", "checks-nothing: give expect_tools", nil},
		{"an empty entry is allowed", "allow_only: [{tool: 'mcp:'}]", "missing-field: tool is missing", nil},
		{"allowed by pattern", "allow_only: ['mcp__.*']", "invalid-value: must be an exact name", nil},
		{"bad tool", "expect_tools: [{tool: '('}]", "bad-regex: tool", nil},
		{"bad pattern", "reject_tools: [{tool: a, command_pattern: '['}]", "bad-regex: command_pattern", nil},
		{"bad regex", "reject_tools: [{tool: a, args: {x: {regex: '['}}}]", "bad-regex: regex", nil},
		{"bad schema", "reject_tools: [{tool: a, args: {x: {json_schema: {type: zzz}}}}]", "bad-schema: args", nil},
		{"misspelt key", "reject_tools: [{tool: a, comand_pattern: x}]", "wrong-type: unknown key \"comand_pattern\"", nil},
		{"misspelt matcher", "reject_tools: [{tool: a, args: {x: {regexp: y}}}]", "wrong-type: unknown matcher \"regexp\"", nil},
		{"misspelt bound", "reject_tools: [{tool: a, args: {x: {range: {gte: 1, ltt: 2}}}}]", "wrong-type: unknown key \"ltt\"", nil},
		{"no bound", "reject_tools: [{tool: a, args: {x: {range: {}}}}]", "invalid-value: range needs", nil},
		{"two matchers", "reject_tools: [{tool: a, args: {x: {regex: y, contains: z}}}]", "wrong-type: must have one of", nil},
		{"empty matcher", "reject_tools: [{tool: a, args: {x: {contains: ''}}}]", "invalid-value: is empty", nil},
		{"no tool", "expect_tools: [{}]", "missing-field: tool is missing", nil},
	})
}

// The name of a tool once matched anywhere in other names: reject_tools: [read] rejected
// thread_list, and thread_list met expect_tools: [read].
func TestToolNamesMatchWhole(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Calling("thread_list", "functions.bash", `fetch[0] {"url": "HTTP://x"}`))
	rejected := func(name string) gradertest.Verdict { return gradertest.Scores(0, "rejected call of "+name) }
	for tool, want := range map[string]gradertest.Verdict{
		"read": gradertest.Passes(), "thread": gradertest.Passes(), "list": gradertest.Passes(),
		"read|write": gradertest.Passes(), "read_?": gradertest.Passes(), "d_l": gradertest.Passes(), "function.": gradertest.Passes(),
		"thread_list": rejected("thread_list"), "THREAD_LIST": rejected("THREAD_LIST"), "read|thread_list": rejected("read|thread_list"),
		".*read.*": rejected(".*read.*"), "thread_.+": rejected("thread_.+"), "^thread": rejected("^thread"), "_LIST$": rejected("_LIST$"),
		"^(read|list)": gradertest.Passes(), `\bbash`: rejected(`\bbash`), `\Abash`: gradertest.Passes(),
		"functions.bash": rejected("functions.bash"), "fetch[0]": rejected("fetch[0]"), `fetch\[\d\]`: rejected(`fetch\[\d\]`),
	} {
		gradertest.RunCases(t, "tool_constraint", []gradertest.Case{{"reject " + tool, "reject_tools: ['" + tool + "']", nil, trial, want}})
	}
	gradertest.RunCases(t, "tool_constraint", []gradertest.Case{
		{"expect", "expect_tools: [read]", nil, trial, gradertest.Scores(0, "no call of read; called: thread_list")},
		// regex was once case-sensitive, unlike command_pattern and the others.
		{"regex in any case", "expect_tools: [{tool: 'fetch.*', args: {url: {regex: ^http}}}]", nil, trial, gradertest.Passes()},
		{
			"regex in its own case", "expect_tools: [{tool: 'fetch.*', args: {url: {regex: '(?-i)^http'}}}]", nil,
			trial, gradertest.Scores(0, "does not match"),
		},
	})
	gradertest.RunOptions(t, "tool_constraint", []gradertest.OptionCase{
		{"like a glob", "reject_tools: ['mcp__*']", `bad-regex: reject_tools[0].tool: "mcp__*" is a regular expression`, nil},
		{"no glob", "reject_tools: ['mcp__.*']", "", nil},
	})
	gradertest.RunOptions(t, "behavior", []gradertest.OptionCase{
		{"like a pattern", "forbidden_tools: ['mcp__*']", `invalid-value: forbidden_tools[0]: "mcp__*" must be an exact name`, nil},
	})
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	trial := gradertest.Subject("", gradertest.Calling(`bash {"command": "azd up"}`, `bash {"command": "git commit"}`, "view"))
	gradertest.RunCases(t, "tool_calls", []gradertest.Case{
		{"required", "required_tools: [bash, view]", nil, trial, gradertest.Passes()},
		{"required and missing", "required_tools: [bash, edit]", nil, trial, gradertest.Scores(0.5, `"edit" was not called`)},
		{"forbidden", "forbidden_tools: [view, edit]", nil, trial, gradertest.Scores(0.5, `"view" was called`)},
		{"enough", "min_calls: 3\nmax_calls: 3", nil, trial, gradertest.Passes()},
		{"too few", "min_calls: 4", nil, trial, gradertest.Scores(0, "3 tool calls, fewer than min_calls 4")},
		{"too many", "max_calls: 2", nil, trial, gradertest.Scores(0, "3 tool calls, more than max_tool_calls 2")},
		{"expect", "expect: [{tool: bash, args: {command: {contains: azd}}}]", nil, trial, gradertest.Passes()},
		{
			"expect and missing", "expect: [{tool: bash, args: {command: {contains: rm}}}]", nil, trial,
			gradertest.Scores(0, "no call of bash, args.command"),
		},
		{"older", "required: [{pattern: azd up}, GIT commit]\nforbidden: [{pattern: rm -rf}]", nil, trial, gradertest.Passes()},
		{
			"older and missing", "required: [{pattern: azd down}]\nforbidden: [sudo, git]", nil, trial,
			gradertest.Scores(1./3, "0 calls of /azd down/", "1 call of /git/"),
		},
		{"count", "required: [{pattern: ^bash$, count: 3}]", nil, trial, gradertest.Scores(0, "2 calls of /^bash$/, fewer than 3")},
		{"arguments", "required: [{pattern: ^bash$, args_pattern: azd}]", nil, trial, gradertest.Passes()},
		{
			"arguments of another tool", "required: [{pattern: ^view$, args_pattern: azd}]", nil, trial,
			gradertest.Scores(0, "0 calls of /^view$/ with /azd/"),
		},
	})
	gradertest.RunOptions(t, "tool_calls", []gradertest.OptionCase{
		{"nothing", "{}", "checks-nothing: nothing to check", nil},
		{"always met", "min_calls: 0", "checks-nothing: nothing to check", nil},
		{"bounds", "min_calls: 3\nmax_calls: 2", "invalid-value: min_calls 3 is more than max_calls 2", nil},
		{"negative", "min_calls: -1", "invalid-value: at least 0", nil},
		{"bad pattern", "required: [{pattern: '('}]", "bad-regex: pattern", nil},
		{"no pattern", "forbidden: [{count: 1}]", "missing-field: pattern is missing", nil},
		{"misspelt key", "forbidden: [{patern: x}]", "wrong-type: unknown key", nil},
		{"bad expectation", "expect: [{tool: a, args: {x: {regex: '['}}}]", "bad-regex: regex", nil},
	})
}

// Graders can name a tool by another agent's name; the result lists the names that were
// replaced.
func TestToolAliases(t *testing.T) {
	t.Parallel()
	aliases := func(s *grader.Subject) {
		s.Capabilities.ToolAliases = map[string][]string{"read": {"view"}, "write": {"create"}, "run_shell_command": {"bash"}}
	}
	calls := gradertest.Calling(`read {"filePath":"a"}`, `write {"filePath":"b"}`, `read {"filePath":"b"}`)
	for _, tc := range []struct {
		typ, config string
		want        gradertest.Verdict
		taken       map[string]string
	}{
		{"behavior", "required_tools: [view, create]", gradertest.Passes(), map[string]string{"view": "read", "create": "write"}},
		{
			"behavior", "forbidden_tools: [view]", gradertest.Scores(0, `forbidden tool "view" was called 2 times`),
			map[string]string{"view": "read"},
		},
		{"behavior", "required_tools: [read]\nforbidden_tools: [view]", gradertest.Passes(), nil},
		{"behavior", "required_tools: [bash]", gradertest.Scores(0), nil},
		{
			"action_sequence", "expected_actions: [view, create, view]\nmatching_mode: exact", gradertest.Passes(),
			map[string]string{"view": "read", "create": "write"},
		},
		{
			"action_sequence", "expected_actions: [read, create, read]\nmatching_mode: exact", gradertest.Passes(),
			map[string]string{"create": "write"},
		},
		{"tool_constraint", "expect_tools: [{tool: VIEW}]", gradertest.Passes(), map[string]string{"view": "read"}},
		{
			"tool_constraint", "reject_tools: [{tool: create, path_pattern: b}]",
			gradertest.Scores(0, "rejected call of create"), map[string]string{"create": "write"},
		},
		{
			"tool_constraint", `{syntax: javascript, expect_tools: [{tool: '(?i)^View$', args_pattern: '"filePath":"b"', max: 1}]}`,
			gradertest.Passes(), map[string]string{"view": "read"},
		},
		{
			"tool_constraint", `{syntax: javascript, order: [{before: {tool: '(?i)^View$'}, after: {tool: '(?i)^Create$', args_pattern: b}}]}`,
			gradertest.Passes(), map[string]string{"view": "read", "create": "write"},
		},
		{"tool_calls", "required: [{tool: view, count: 2}]", gradertest.Passes(), map[string]string{"view": "read"}},
		{"tool_calls", "forbidden: [{pattern: ^create$}]", gradertest.Scores(0), map[string]string{"create": "write"}},
		{"tool_calls", "required_tools: [view]", gradertest.Passes(), map[string]string{"view": "read"}},
	} {
		t.Run(tc.typ+" "+tc.config, func(t *testing.T) {
			t.Parallel()
			b, _ := gradertest.Bind(t, tc.typ, tc.config, nil)
			s := gradertest.Subject("x", calls, aliases)
			got := gradertest.RequireVerdict(t, b, s, tc.want)
			require.Equal(t, tc.taken, got.ToolNames)
			require.Equal(t, "read", s.ToolCalls[0].Name, "other graders see the agent's names")
		})
	}
	// Without aliases, names must be exact.
	b, _ := gradertest.Bind(t, "behavior", "required_tools: [view]", nil)
	gradertest.RequireVerdict(t, b, gradertest.Subject("x", calls), gradertest.Scores(0, `required tool "view" was not called`))
}
