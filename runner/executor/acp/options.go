package acp

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
)

// Options are the keys of a suite's config for agents that speak the Agent Client Protocol.
type Options struct {
	// Agent to drive: copilot, opencode, gemini, claude-code, codex, qwen, goose, an agent
	// defined in .waza.yaml under agents, or a map with command, args, env and cwd.
	Agent Agent `yaml:"agent" jsonschema_extras:"x-refers=agent"`
	// Answer to the agent's permission requests: allow everything, deny everything, or
	// workspace. The policy workspace allows files below the workspace, commands run in it, and
	// the suite's skills and MCP servers.
	Permissions Policy `yaml:"permissions" jsonschema:"enum=allow,enum=deny,enum=workspace,default=workspace"`

	// Project is the definition of the agent in .waza.yaml. It is an option because it is part
	// of a trial's identity.
	Project *eval.ProjectAgent `yaml:"-"`
}

// Policy determines what an agent is allowed to do when it asks.
type Policy string

// The permission policies.
const (
	Allow     Policy = "allow"
	Deny      Policy = "deny"
	Workspace Policy = "workspace"
)

// Agent is the name of a preset, or the definition of an agent.
type Agent struct {
	Name string
	Spec *eval.ProjectAgent
}

// AgentName returns the name by which the agent was chosen, or "" if the options define it.
func (o *Options) AgentName() string { return o.Agent.Name }

// Environment returns the variables that the suite and .waza.yaml set for the agent.
func (o *Options) Environment() map[string]string {
	env := map[string]string{}
	for _, spec := range []*eval.ProjectAgent{o.Project, o.Agent.Spec} {
		if spec != nil {
			maps.Copy(env, spec.Env)
		}
	}
	return env
}

// Refers returns the files of the suite to which the agent's command refers.
func (o *Options) Refers(suite *eval.Suite, _ *eval.Task) []string {
	var words []string
	for _, spec := range []*eval.ProjectAgent{o.Project, o.Agent.Spec} {
		if spec != nil {
			words = slices.Concat(words, spec.Command, spec.Args)
		}
	}
	return suite.Mentioned("", words...)
}

// UnmarshalYAML accepts a name or a map.
func (a *Agent) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		a.Name = strings.TrimSpace(n.Value)
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("agent must be a name, or a map with a command")
	}
	known := specKeys()
	whole := *n
	whole.Content = slices.Clone(n.Content)
	for i := 0; i+1 < len(whole.Content); i += 2 {
		key, value := whole.Content[i].Value, whole.Content[i+1]
		if !slices.Contains(known, key) {
			return fmt.Errorf("unknown key %q; known keys: %s", key, strings.Join(known, ", "))
		}
		if lists[key] && value.Kind == yaml.ScalarNode {
			whole.Content[i+1] = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}}
		}
	}
	a.Spec = &eval.ProjectAgent{}
	return whole.Decode(a.Spec)
}

// lists are the keys that accept a single string instead of a list.
var lists = map[string]bool{"command": true, "args": true, "model_args": true}

func specKeys() []string { return decode.Keys(eval.ProjectAgent{}) }

// meanings describe the keys of an agent.
var meanings = map[string]string{
	"preset":  "Preset to start from; the other keys override it.",
	"command": "Program that speaks the Agent Client Protocol on its standard input and output.",
	"args":    "Arguments of the program.",
	"env":     "Environment variables of the agent.",
	"cwd":     "Directory in which the agent starts; a private one by default. Sessions always use the trial's workspace.",
	"skills":  "Directory of the workspace in which the agent looks for skills, such as .claude/skills.",
	"instructions": "File of the workspace from which the agent reads instructions, such as CLAUDE.md. waza writes " +
		"config.instruction_files to it.",
	"model_env":  "Environment variable that waza sets to config.model.",
	"model_args": "Arguments that pass config.model to the agent; {model} is replaced by it.",
	"install":    "Command that installs the agent, shown when it is missing.",
	"login":      "Command that logs in, shown when the agent requires a login.",
}

// JSONSchema describes a name or a map.
func (Agent) JSONSchema() *jsonschema.Schema {
	props := jsonschema.NewProperties()
	for _, key := range specKeys() {
		s := &jsonschema.Schema{Description: meanings[key]}
		switch {
		case lists[key]:
			s.OneOf = []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}
		case key == "env":
			s.Type, s.AdditionalProperties = "object", &jsonschema.Schema{Type: "string"}
		default:
			s.Type = "string"
		}
		props.Set(key, s)
	}
	names := []any{}
	for _, name := range presetNames() {
		names = append(names, name)
	}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", Examples: names}, {Type: "object", Properties: props, AdditionalProperties: jsonschema.FalseSchema},
	}}
}

// check reports options that do not define a usable agent, and fills Project.
func check(c *eval.Check, o *Options) {
	if _, err := resolve(o, c.Suite()); err != nil {
		near := decode.Nearest(o.Agent.Name, agentNames(c.Suite()))
		code := decode.CodeInvalidValue
		if !c.Has(decode.At("agent")) {
			code = decode.CodeMissingField
		}
		c.Suggestf(decode.At("agent"), decode.Error, code, near, "%v", err)
	}
	o.Project = projectAgent(o, c.Suite())
	for _, spec := range []*eval.ProjectAgent{o.Agent.Spec, o.Project} {
		if spec == nil {
			continue
		}
		for k := range spec.Env {
			if k == "" || strings.ContainsAny(k, "=\x00") {
				c.Errorf(decode.At("agent", "env", k), decode.CodeInvalidValue,
					"invalid environment variable name %q: it must not be empty or contain '='", k)
			}
		}
		for key, place := range map[string]string{"skills": spec.Skills, "instructions": spec.Instructions} {
			if place != "" && !filepath.IsLocal(place) {
				c.Errorf(decode.At("agent", key), decode.CodeEscapingPath, "%q must be a path below the workspace", place)
			}
		}
	}
	servers := c.Suite().Config.MCPServers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if _, err := mcpServer(name, servers[name]); err != nil {
			c.Errorf(decode.At("mcp_servers", name), decode.CodeInvalidValue, "%v", err)
		}
	}
}

// projectAgent returns the definition in .waza.yaml of the agent that the options name, or nil
// if it has none.
func projectAgent(o *Options, s *eval.Suite) *eval.ProjectAgent {
	if s.Project == nil || o.Agent.Spec != nil {
		return nil
	}
	if spec, ok := s.Project.Agents[o.Agent.Name]; ok {
		return &spec
	}
	return nil
}

func agentNames(s *eval.Suite) []string { return AgentNames(s.Project) }

// AgentNames returns the names of all agents that come with waza or that the project defines.
// The project can be nil. The caller owns the slice.
func AgentNames(p *eval.Project) []string {
	names := slices.Clone(presetNames())
	if p != nil {
		names = append(names, slices.Sorted(maps.Keys(p.Agents))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// resolve combines the table of presets, .waza.yaml and the suite into one preset.
func resolve(o *Options, s *eval.Suite) (preset, error) {
	spec := o.Agent.Spec
	if spec == nil {
		if o.Agent.Name == "" {
			return preset{}, fmt.Errorf("config.agent is missing; set it to one of %s, or to a map with a command, or pass --agent for one run",
				strings.Join(agentNames(s), ", "))
		}
		spec = projectAgent(o, s)
	}
	if spec == nil {
		if p, ok := presetNamed(o.Agent.Name); ok {
			return p, nil
		}
		return preset{}, fmt.Errorf("unknown agent %q; known agents: %s; .waza.yaml can define more under agents",
			o.Agent.Name, strings.Join(agentNames(s), ", "))
	}
	base := preset{name: o.Agent.Name, skills: ".agents/skills", instructions: "AGENTS.md", skill: anySkill}
	switch known, ok := presetNamed(spec.Preset); {
	case ok:
		base = known
	case spec.Preset != "":
		return preset{}, fmt.Errorf("unknown preset %q; known presets: %s", spec.Preset, strings.Join(presetNames(), ", "))
	default:
		if p, ok := presetNamed(o.Agent.Name); ok {
			base = p
		}
	}
	p := base.with(spec)
	if len(p.commands) == 0 || strings.TrimSpace(p.commands[0][0]) == "" {
		return preset{}, fmt.Errorf("config.agent: command is missing; set it to a program that speaks the Agent Client Protocol")
	}
	p.name = cmp.Or(p.name, filepath.Base(p.commands[0][0]))
	return p, nil
}

// with returns a copy of p in which the values of spec replace those of the preset.
func (p preset) with(spec *eval.ProjectAgent) preset {
	if len(spec.Command) > 0 {
		p.commands = [][]string{append(slices.Clone(spec.Command), spec.Args...)}
	} else if len(spec.Args) > 0 {
		var commands [][]string
		for _, c := range p.commands {
			commands = append(commands, append(slices.Clone(c), spec.Args...))
		}
		p.commands = commands
	}
	p.env, p.cwd = spec.Env, spec.Cwd
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&p.skills, spec.Skills}, {&p.instructions, spec.Instructions}, {&p.modelEnv, spec.ModelEnv},
		{&p.install, spec.Install}, {&p.login, spec.Login},
	} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if len(spec.ModelArgs) > 0 {
		p.modelArgs = spec.ModelArgs
	}
	return p
}
