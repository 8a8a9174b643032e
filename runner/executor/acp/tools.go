package acp

import (
	"sync"

	"waza/runner/executor"
)

// toolAliases maps the tool names of each agent to the names that suites use for them. Suites in
// the field mostly use Copilot's names: bash, view, create, edit, grep, glob, web_fetch, task,
// skill. Others use read, write and fetch.
var toolAliases = sync.OnceValue(func() map[string]map[string][]string {
	return map[string]map[string][]string{
		"copilot": {
			"view": {"read"}, "create": {"write"}, "web_fetch": {"fetch", "webfetch"}, "rg": {"grep"}, "apply_patch": {"edit"},
		},
		"opencode": {
			"read": {"view"}, "write": {"create"}, "webfetch": {"web_fetch", "fetch"}, "patch": {"edit"}, "apply_patch": {"edit"},
		},
		"gemini": {
			"run_shell_command": {"bash"}, "read_file": {"view", "read"}, "read_many_files": {"view", "read"},
			"write_file": {"create", "write"}, "replace": {"edit"}, "search_file_content": {"grep"}, "grep_search": {"grep"},
			"web_fetch": {"fetch", "webfetch"}, "activate_skill": {"skill"},
		},
		"claude-code": {
			"Bash": {"bash"}, "Read": {"view", "read"}, "Write": {"create", "write"}, "Edit": {"edit"}, "MultiEdit": {"edit"},
			"Grep": {"grep"}, "Glob": {"glob"}, "WebFetch": {"web_fetch", "fetch", "webfetch"}, "Task": {"task"}, "Skill": {"skill"},
			"mcp__acp__Bash": {"bash"}, "mcp__acp__Read": {"view", "read"}, "mcp__acp__Write": {"create", "write"}, "mcp__acp__Edit": {"edit"},
		},
		"codex": {
			"exec_command": {"bash"}, "read": {"view"}, "apply_patch": {"edit", "create", "write"},
		},
		"qwen": {
			"run_shell_command": {"bash"}, "read_file": {"view", "read"}, "write_file": {"create", "write"},
			"replace": {"edit"}, "grep_search": {"grep"}, "search_file_content": {"grep"}, "web_fetch": {"fetch", "webfetch"},
		},
		"goose": {
			"shell": {"bash"}, "text_editor": {"edit"}, "load_skill": {"skill"},
		},
	}
})

// can returns what an executor with these options reports. The tool names depend on the preset
// from which the agent derives.
func can(s executor.Settings, o *Options) executor.Capabilities {
	c := executor.Capabilities{Skills: true}
	if o == nil || s.Suite == nil || s.Suite.Config.ExactTools {
		return c
	}
	if p, err := resolve(o, s.Suite); err == nil {
		c.ToolAliases = toolAliases()[p.preset]
	}
	return c
}
