package acp

import (
	"regexp"
	"strings"
	"waza/eval/text"
)

// preset describes an agent: how to start it, and its behavior where the protocol leaves a
// choice. Everything but commands can be empty.
type preset struct {
	name string
	// preset is the name of the built-in preset from which this one derives. It is empty for
	// other agents.
	preset string
	// commands are alternatives for starting the agent. The first installed one is used.
	commands [][]string
	env      map[string]string // set by the user; overrides everything else
	cwd      string
	install  string // command that installs it
	login    string // command that logs in
	keyEnv   string // variable with the key of its usual provider, in place of a login
	// logins are the directories and files below the home directory in which it keeps its login,
	// its settings and its caches.
	logins []string
	// personal are the user's own skills, instructions, agents and commands among them, which would be
	// in all arms of a comparison.
	personal []string

	// skills is the directory below the workspace in which it looks for skills.
	skills string
	// instructions is the file below the workspace from which it reads general instructions.
	instructions string
	// The model is chosen by the environment variable modelEnv, or by arguments in which {model}
	// is replaced. If both are empty, it is chosen in the session.
	modelEnv  string
	modelArgs []string

	// sets are environment variables for every policy. Variables of the user override them.
	sets map[string]string
	// asks are environment variables, by policy, that make the agent ask before it acts. limits
	// are arguments for every policy except allow.
	asks   map[Policy]map[string]string
	limits []string
	// confined are environment variables, by policy, for an agent in a sandbox of waza. They replace
	// those of asks. An agent cannot start a sandbox of its own inside it, so they switch that off.
	confined map[Policy]map[string]string

	// tool returns the name of the tool of a call, or "" to use the general rule.
	tool func(c *call) string
	// skill returns the name of the skill that a call invokes, or "" for none.
	skill func(c *call) string
	// fault matches a chunk of a message that reports a failure of the provider. notice matches
	// a chunk that comes from the agent program instead of the model.
	fault, notice func() *regexp.Regexp
	// loggedOut matches an error that means that no user is logged in.
	loggedOut func() *regexp.Regexp
	// refused matches an error answer to a prompt that means that the agent gave up the turn
	// because it was refused a permission.
	refused func() *regexp.Regexp
	// sessionUsage means that the usage of a turn covers the whole session until then.
	sessionUsage bool
	// startsNoServers means that it accepts only MCP servers that are already running.
	startsNoServers bool
	// portArgs are arguments in which {port} is replaced by a free local port. The agent listens
	// there and reports the tokens of a session.
	portArgs []string
}

// presets are the built-in agents. .waza.yaml can change them and add others.
var presets = []preset{
	{
		name:         "copilot",
		commands:     [][]string{{"copilot", "--acp"}},
		install:      "npm install -g @github/copilot",
		login:        "copilot login",
		keyEnv:       "COPILOT_GITHUB_TOKEN",
		logins:       []string{".copilot", ".config/github-copilot", ".cache/copilot", ".config/gh"},
		personal:     []string{".copilot/skills", ".copilot/agents", ".copilot/copilot-instructions.md"},
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

		startsNoServers: true,
	},
	{
		name:         "opencode",
		commands:     [][]string{{"opencode", "acp"}},
		install:      "npm install -g opencode-ai",
		login:        "opencode auth login",
		keyEnv:       "ANTHROPIC_API_KEY",
		logins:       []string{".local/share/opencode", ".local/state/opencode", ".config/opencode", ".cache/opencode"},
		personal:     []string{".config/opencode/AGENTS.md", ".config/opencode/skill", ".config/opencode/skills", ".config/opencode/agent", ".config/opencode/agents", ".config/opencode/command", ".config/opencode/commands", ".config/opencode/plugin", ".config/opencode/plugins"},
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
		keyEnv:       "GEMINI_API_KEY",
		logins:       []string{".gemini"},
		personal:     []string{".gemini/GEMINI.md", ".gemini/skills", ".gemini/extensions", ".gemini/commands", ".gemini/agents"},
		skills:       ".gemini/skills",
		instructions: "GEMINI.md",
		modelArgs:    []string{"--model", "{model}"},
		sets:         map[string]string{"GEMINI_CLI_TRUST_WORKSPACE": "true"}, // otherwise it loads no skills from the workspace
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
		keyEnv:       "ANTHROPIC_API_KEY",
		logins:       []string{".claude", ".claude.json"},
		personal:     []string{".claude/CLAUDE.md", ".claude/skills", ".claude/agents", ".claude/commands", ".claude/plugins", ".claude/rules", ".claude/output-styles"},
		skills:       ".claude/skills",
		instructions: "CLAUDE.md",
		modelEnv:     "ANTHROPIC_MODEL",
		confined: map[Policy]map[string]string{ // otherwise it refuses to run as root
			Workspace: {"IS_SANDBOX": "1"}, Allow: {"IS_SANDBOX": "1"}, Deny: {"IS_SANDBOX": "1"},
		},
		skill:     skillByTool("Skill", "skill", "command", "name"),
		fault:     text.Pattern(`^API Error(?::| \d)`),
		loggedOut: text.Pattern(`(?i)please run /login|invalid api key|authentication required`),
	},
	{
		name:         "codex",
		commands:     [][]string{{"codex-acp"}},
		install:      "npm install -g @agentclientprotocol/codex-acp",
		login:        "codex login, or set OPENAI_API_KEY",
		keyEnv:       "OPENAI_API_KEY",
		logins:       []string{".codex"},
		personal:     []string{".codex/AGENTS.md", ".codex/AGENTS.override.md", ".codex/skills", ".codex/prompts"},
		skills:       ".agents/skills",
		instructions: "AGENTS.md",
		asks: map[Policy]map[string]string{
			Workspace: {"INITIAL_AGENT_MODE": "agent"}, Deny: {"INITIAL_AGENT_MODE": "read-only"},
		},
		confined: map[Policy]map[string]string{
			Workspace: {"INITIAL_AGENT_MODE": "agent-full-access"}, Allow: {"INITIAL_AGENT_MODE": "agent-full-access"},
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
		keyEnv:       "OPENAI_API_KEY",
		logins:       []string{".qwen"},
		personal:     []string{".qwen/QWEN.md", ".qwen/skills", ".qwen/extensions", ".qwen/commands", ".qwen/agents"},
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
		logins:       []string{".config/goose", ".local/share/goose", ".local/state/goose"},
		personal:     []string{".config/goose/.goosehints", ".config/goose/skills", ".config/goose/recipes"},
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
			p.preset = p.name
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

// copilotTool names a tool of Copilot by the arguments of a call, because Copilot's titles
// describe the call and not the tool.
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

// toolByKind returns "", so that the kind of the call determines the name.
func toolByKind(*call) string { return "" }

var geminiSkillTitle = text.Pattern(`^"([^"]+)"`)

// geminiSkill takes the skill from titles such as `"greeter": greets people`, because Gemini
// sends no arguments.
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

// anySkill is the default rule for unknown agents.
var anySkill = skillByTitle(text.Pattern(`^(?:[Ss]kill$|Using skill: |Loaded skill: )`), "skill", "name")
