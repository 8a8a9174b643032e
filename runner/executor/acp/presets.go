package acp

import (
	"regexp"
	"strings"
	"waza/eval/text"
)

// preset is what waza knows of an agent: how to start it, and what the protocol
// leaves open. Everything but commands may be empty.
type preset struct {
	name string
	// commands are ways to start the agent, of which the first that is installed is used.
	commands [][]string
	env      map[string]string // the user's own, over all else
	cwd      string
	install  string // what to type to install it
	login    string // what to type to log in

	// skills is where it looks for skills, below the workspace.
	skills string
	// instructions is the file in which it reads what it is told for all work,
	// below the workspace.
	instructions string
	// The model is chosen by an environment variable, by arguments in which
	// {model} stands for it, or, when both are empty, in the session.
	modelEnv  string
	modelArgs []string

	// sets are environment variables for every policy. The user's own are over them.
	sets map[string]string
	// asks are environment variables, by policy, that make it ask before it
	// acts; limits are arguments for every policy but allow.
	asks   map[Policy]map[string]string
	limits []string

	// tool names the tool of a call, "" to leave it to the general rule.
	tool func(c *call) string
	// skill gives the name of the skill that a call invokes, "" if none.
	skill func(c *call) string
	// fault recognises a chunk of a message that says the provider failed;
	// notice one that is the agent program's own, not the model's.
	fault, notice func() *regexp.Regexp
	// loggedOut recognises an error that means nobody is logged in.
	loggedOut func() *regexp.Regexp
	// refused recognises the error answer to a prompt by which the agent tells
	// that it gave up the turn because a permission was refused.
	refused func() *regexp.Regexp
	// sessionUsage: the usage of a turn counts the whole session so far.
	sessionUsage bool
	// portArgs are arguments in which {port} stands for a port of this machine.
	// The agent then listens there, and tells how many tokens a session took.
	portArgs []string
}

// presets are the built-in agents. .waza.yaml can change them and add others.
var presets = []preset{
	{
		name:         "copilot",
		commands:     [][]string{{"copilot", "--acp"}},
		install:      "npm install -g @github/copilot",
		login:        "copilot login",
		skills:       ".github/skills",
		instructions: ".github/copilot-instructions.md",
		modelEnv:     "COPILOT_MODEL",
		asks: map[Policy]map[string]string{
			Workspace: {"COPILOT_ALLOW_ALL": ""}, Deny: {"COPILOT_ALLOW_ALL": ""},
		},
		limits:       []string{"--disallow-temp-dir"},
		tool:         copilotTool,
		skill:        skillByTitle(text.Pattern(`^(?:Using skill: .+|skill)$`), "skill", "name"),
		fault:        text.Pattern(`^Error: `),
		notice:       text.Pattern(`^(?:Info: Operation cancelled by user|(?:Info|Warning): .*(?:[Rr]etrying|transient API error|rate limit))`),
		loggedOut:    text.Pattern(`(?i)no authentication information|not (?:logged|signed) in|authentication required`),
		sessionUsage: true,
	},
	{
		name:         "opencode",
		commands:     [][]string{{"opencode", "acp"}},
		install:      "npm install -g opencode-ai",
		login:        "opencode auth login",
		skills:       ".opencode/skills",
		instructions: "AGENTS.md",
		asks: map[Policy]map[string]string{
			Workspace: {"OPENCODE_PERMISSION": `{"edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask","external_directory":"ask"}`},
			Deny:      {"OPENCODE_PERMISSION": `{"*":"ask"}`},
		},
		skill:     skillByTitle(text.Pattern(`^(?:skill$|Loaded skill: )`), "name"),
		loggedOut: text.Pattern(`(?i)ProviderAuthError|no provider(?:s)? (?:is )?(?:configured|available)`),
		refused:   text.Pattern(`(?:rejected permission to use|has specified a rule which prevents you from using) this specific tool call`),
		portArgs:  []string{"--port", "{port}"},
	},
	{
		name:         "gemini",
		commands:     [][]string{{"gemini", "--acp"}},
		install:      "npm install -g @google/gemini-cli",
		login:        "gemini, once, and choose how to log in; or set GEMINI_API_KEY",
		skills:       ".gemini/skills",
		instructions: "GEMINI.md",
		modelArgs:    []string{"--model", "{model}"},
		sets:         map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"}, // else it takes no skills from there
		limits:       []string{"--approval-mode", "default"},
		tool:         toolByID,
		skill:        geminiSkill,
		loggedOut:    text.Pattern(`(?i)authentication required|set an auth method|GEMINI_API_KEY`),
	},
	{
		name:         "claude-code",
		commands:     [][]string{{"claude-agent-acp"}, {"claude-code-acp"}},
		install:      "npm install -g @agentclientprotocol/claude-agent-acp",
		login:        "claude /login, or set ANTHROPIC_API_KEY",
		skills:       ".claude/skills",
		instructions: "CLAUDE.md",
		modelEnv:     "ANTHROPIC_MODEL",
		skill:        skillByTool("Skill", "skill", "command", "name"),
		fault:        text.Pattern(`^API Error(?::| \d)`),
		loggedOut:    text.Pattern(`(?i)please run /login|invalid api key|authentication required`),
	},
	{
		name:         "codex",
		commands:     [][]string{{"codex-acp"}},
		install:      "npm install -g @agentclientprotocol/codex-acp",
		login:        "codex login, or set OPENAI_API_KEY",
		skills:       ".agents/skills",
		instructions: "AGENTS.md",
		asks: map[Policy]map[string]string{
			Workspace: {"INITIAL_AGENT_MODE": "agent"}, Deny: {"INITIAL_AGENT_MODE": "read-only"},
		},
		tool:      toolByKind, // its titles are the commands
		fault:     text.Pattern(`^(?:exceeded retry limit|stream (?:disconnected|error)|unexpected status \d|error sending request)`),
		notice:    text.Pattern(`^(?:Warning: )?Model metadata for .* not found`),
		loggedOut: text.Pattern(`(?i)authentication required|not logged in`),
	},
	{
		name:         "qwen",
		commands:     [][]string{{"qwen", "--acp"}},
		install:      "npm install -g @qwen-code/qwen-code",
		login:        "qwen, once, and choose how to log in; or set OPENAI_API_KEY",
		skills:       ".qwen/skills",
		instructions: "QWEN.md",
		modelArgs:    []string{"--model", "{model}"},
		tool:         toolByID,
		skill:        skillByTool("skill", "skill", "name"),
		loggedOut:    text.Pattern(`(?i)authentication required|no auth type`),
	},
	{
		name:         "goose",
		commands:     [][]string{{"goose", "acp"}},
		install:      "see https://block.github.io/goose/docs/getting-started/installation",
		login:        "goose configure",
		skills:       ".agents/skills",
		instructions: ".goosehints",
		modelEnv:     "GOOSE_MODEL",
		asks: map[Policy]map[string]string{
			Workspace: {"GOOSE_MODE": "approve"}, Deny: {"GOOSE_MODE": "approve"},
		},
		tool:      toolAfterColon,
		skill:     skillByTool("load_skill", "name", "skill"),
		loggedOut: text.Pattern(`(?i)no provider configured|failed to (?:read|get) .*api[_ ]key`),
	},
}

func presetNamed(name string) (preset, bool) {
	for _, p := range presets {
		if strings.EqualFold(p.name, name) {
			return p, true
		}
	}
	return preset{}, false
}

func presetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

// copilotTool names Copilot's tools by what they are given: its titles describe
// a call, and say nothing of the tool.
func copilotTool(c *call) string {
	in := c.input()
	has := func(keys ...string) bool {
		for _, k := range keys {
			if _, ok := in[k]; !ok {
				return false
			}
		}
		return true
	}
	switch {
	case strings.HasPrefix(c.Title, "Using skill: "), has("skill"):
		return "skill"
	case has("command"):
		return "bash"
	case has("path", "file_text"):
		return "create"
	case has("path", "old_str"):
		return "edit"
	case c.Kind == "read" && has("path"):
		return "view"
	case has("url"):
		return "web_fetch"
	case has("pattern") && c.Kind == "search" && has("output_mode"):
		return "grep"
	}
	return ""
}

var callID = text.Pattern(`^([A-Za-z_][A-Za-z0-9_.]*?)(?:-\d|__)`)

// toolByID takes the name from ids such as run_shell_command-1712345678901 and
// run_shell_command__run_shell_command_1712345678901_0.
func toolByID(c *call) string {
	if m := callID().FindStringSubmatch(c.ID); m != nil {
		return m[1]
	}
	return ""
}

// toolByKind leaves it to the kind of the call.
func toolByKind(*call) string { return "" }

var geminiSkillTitle = text.Pattern(`^"([^"]+)"`)

// geminiSkill takes the skill from titles such as `"greeter": greets people`:
// Gemini tells no arguments.
func geminiSkill(c *call) string {
	if c.Name != "activate_skill" {
		return ""
	}
	if name := c.text("name", "skill"); name != "" {
		return name
	}
	for _, title := range []string{c.first, c.Title} {
		if m := geminiSkillTitle().FindStringSubmatch(title); m != nil {
			return m[1]
		}
	}
	return ""
}

// toolAfterColon takes the name from titles such as "developer: shell".
func toolAfterColon(c *call) string {
	if _, name, ok := strings.Cut(c.Title, ": "); ok && word().MatchString(name) {
		return name
	}
	return ""
}

func skillByTitle(title func() *regexp.Regexp, keys ...string) func(*call) string {
	return func(c *call) string {
		if !title().MatchString(c.Title) && !title().MatchString(c.first) {
			return ""
		}
		return c.text(keys...)
	}
}

func skillByTool(tool string, keys ...string) func(*call) string {
	return func(c *call) string {
		if !strings.EqualFold(c.Name, tool) {
			return ""
		}
		return strings.TrimPrefix(c.text(keys...), "/")
	}
}

// anySkill is the guess for agents of which nothing is known.
var anySkill = skillByTitle(text.Pattern(`^(?:[Ss]kill$|Using skill: |Loaded skill: )`), "skill", "name")
