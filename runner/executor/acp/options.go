package acp

import (
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

// Options are the keys of a suite's config that belong to agents which speak
// the Agent Client Protocol.
type Options struct {
	// Agent to drive: copilot, opencode, gemini, claude-code, codex, qwen, goose, one that .waza.yaml names under agents, or a map with command, args, env and cwd.
	Agent Agent `yaml:"agent" jsonschema_extras:"x-refers=agent"`
	// What the agent may do when it asks: allow everything, deny everything, or workspace: files below the workspace, commands run in it, the suite's skills and MCP servers.
	Permissions Policy `yaml:"permissions" jsonschema:"enum=allow,enum=deny,enum=workspace,default=workspace"`

	// Project is what .waza.yaml says of the agent. It is here because it is
	// part of what a trial is.
	Project *eval.ProjectAgent `yaml:"-"`
}

// Policy says what an agent may do when it asks.
type Policy string

// The policies.
const (
	Allow     Policy = "allow"
	Deny      Policy = "deny"
	Workspace Policy = "workspace"
)

// Agent is the name of a preset, or an agent written out.
type Agent struct {
	Name string
	Spec *eval.ProjectAgent
}

// AgentName is the name by which the agent was chosen, "" if it is written out.
func (o *Options) AgentName() string { return o.Agent.Name }

// Environment is what the suite and .waza.yaml set for the agent.
func (o *Options) Environment() map[string]string {
	env := map[string]string{}
	for _, spec := range []*eval.ProjectAgent{o.Project, o.Agent.Spec} {
		if spec != nil {
			maps.Copy(env, spec.Env)
		}
	}
	return env
}

// Refers names the files of the suite that the agent's command names.
func (o *Options) Refers(suite *eval.Suite, _ *eval.Task) []string {
	var words []string
	for _, spec := range []*eval.ProjectAgent{o.Project, o.Agent.Spec} {
		if spec != nil {
			words = slices.Concat(words, spec.Command, spec.Args)
		}
	}
	return suite.Mentioned("", words...)
}

// UnmarshalYAML takes both shapes.
func (a *Agent) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		a.Name = strings.TrimSpace(n.Value)
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("the name of an agent, or a map with its command, is wanted")
	}
	known := specKeys()
	whole := *n
	whole.Content = slices.Clone(n.Content)
	for i := 0; i+1 < len(whole.Content); i += 2 {
		key, value := whole.Content[i].Value, whole.Content[i+1]
		if !slices.Contains(known, key) {
			return fmt.Errorf("unknown key %q; the known ones are %s", key, strings.Join(known, ", "))
		}
		if lists[key] && value.Kind == yaml.ScalarNode {
			whole.Content[i+1] = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}}
		}
	}
	a.Spec = &eval.ProjectAgent{}
	return whole.Decode(a.Spec)
}

// lists are the keys that may be written as one text.
var lists = map[string]bool{"command": true, "args": true, "model_args": true}

func specKeys() []string { return decode.Keys(eval.ProjectAgent{}) }

// meanings are what the keys of an agent say.
var meanings = map[string]string{
	"preset":       "Preset to begin with; the other keys change it.",
	"command":      "Program that speaks the Agent Client Protocol on its standard input and output.",
	"args":         "Arguments of the program.",
	"env":          "Environment variables of the agent.",
	"cwd":          "Directory the agent is started in; a private one when absent. Sessions work in the trial's workspace all the same.",
	"skills":       "Where in its workspace the agent looks for skills, such as .claude/skills.",
	"instructions": "File of its workspace in which the agent reads instructions, such as CLAUDE.md; gets config.instruction_files.",
	"model_env":    "Environment variable that takes config.model.",
	"model_args":   "Arguments that take config.model, written {model}.",
	"install":      "What to type to install the agent, told when it is missing.",
	"login":        "What to type to log in, told when the agent wants it.",
}

// JSONSchema describes both shapes.
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

// check looks for what keeps the options from meaning an agent, and notes what
// .waza.yaml says of it.
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
				c.Errorf(decode.At("agent", "env", k), decode.CodeInvalidValue, "%q cannot be the name of an environment variable", k)
			}
		}
		for key, place := range map[string]string{"skills": spec.Skills, "instructions": spec.Instructions} {
			if place != "" && !filepath.IsLocal(place) {
				c.Errorf(decode.At("agent", key), decode.CodeEscapingPath, "%q does not lie below the workspace", place)
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

// projectAgent is what .waza.yaml says of the agent that the options name; nil if nothing.
func projectAgent(o *Options, s *eval.Suite) *eval.ProjectAgent {
	if s.Project == nil || o.Agent.Spec != nil {
		return nil
	}
	if spec, ok := s.Project.Agents[o.Agent.Name]; ok {
		return &spec
	}
	return nil
}

func agentNames(s *eval.Suite) []string {
	names := slices.Clone(presetNames())
	if s.Project != nil {
		names = append(names, slices.Sorted(maps.Keys(s.Project.Agents))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// resolve makes one preset of the table, .waza.yaml and the suite.
func resolve(o *Options, s *eval.Suite) (preset, error) {
	spec := o.Agent.Spec
	if spec == nil {
		if o.Agent.Name == "" {
			return preset{}, fmt.Errorf("config.agent is missing: one of %s, or a map with its command; --agent gives it for one run", strings.Join(agentNames(s), ", "))
		}
		spec = projectAgent(o, s)
	}
	if spec == nil {
		if p, ok := presetNamed(o.Agent.Name); ok {
			return p, nil
		}
		return preset{}, fmt.Errorf("no agent is called %q; the known ones are %s, and .waza.yaml may name more under agents", o.Agent.Name, strings.Join(agentNames(s), ", "))
	}
	base := preset{name: o.Agent.Name, skills: ".agents/skills", instructions: "AGENTS.md", skill: anySkill}
	switch known, ok := presetNamed(spec.Preset); {
	case ok:
		base = known
	case spec.Preset != "":
		return preset{}, fmt.Errorf("no preset is called %q; the known ones are %s", spec.Preset, strings.Join(presetNames(), ", "))
	default:
		if p, ok := presetNamed(o.Agent.Name); ok {
			base = p
		}
	}
	p := base.with(spec)
	if len(p.commands) == 0 || strings.TrimSpace(p.commands[0][0]) == "" {
		return preset{}, fmt.Errorf("config.agent: command is missing: the program that speaks the Agent Client Protocol")
	}
	if p.name == "" {
		p.name = filepath.Base(p.commands[0][0])
	}
	return p, nil
}

// with puts what spec gives in place of what the preset says.
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
	}{{&p.skills, spec.Skills}, {&p.instructions, spec.Instructions}, {&p.modelEnv, spec.ModelEnv}, {&p.install, spec.Install}, {&p.login, spec.Login}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if len(spec.ModelArgs) > 0 {
		p.modelArgs = spec.ModelArgs
	}
	return p
}
