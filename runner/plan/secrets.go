package plan

import (
	"encoding/json"
	"os"

	"waza/runner/executor"
	"waza/runner/record"
)

// Inherited returns the part of this process's environment that the programs of a run receive.
func (p *Plan) Inherited() []string { return p.Config.Inherited(os.Environ()) }

// learnSecrets adds the secrets of the run to its redactor: keys in the environment of its
// agents, graders and hooks, those that the suite passes to the executor and to MCP servers, and
// values of its parameters.
func (d *draft) learnSecrets() {
	p := d.Plan
	env := os.Environ()
	env = appendServers(env, p.Config.MCPServers)
	for _, t := range p.Tasks {
		env = appendEnv(env, t.Inputs.Environment)
		env = appendServers(env, t.MCPServers)
	}
	for _, c := range p.cells {
		if o, ok := c.Settings.Options.(executor.Environment); ok {
			env = appendEnv(env, o.Environment())
		}
	}
	p.Pool.Redactor().Learn(env)
	for _, value := range p.Suite.Secrets() {
		p.Pool.Redactor().Add(value)
	}
}

// appendServers adds the environment and the headers of MCP servers.
func appendServers(env []string, servers map[string]any) []string {
	for _, server := range servers {
		s, _ := server.(map[string]any)
		for _, key := range []string{"env", "headers"} {
			values, _ := s[key].(map[string]any)
			for name, value := range values {
				if text, ok := value.(string); ok {
					env = append(env, name+"="+text)
				}
			}
		}
	}
	return env
}

func appendEnv(env []string, more map[string]string) []string {
	for k, v := range more {
		env = append(env, k+"="+v)
	}
	return env
}

// Redact removes keys from a record before it is written, because a suite may contain them in
// the settings of MCP servers. It changes both the record and its text.
func (p *Plan) Redact(rec *record.Run, text []byte) ([]byte, error) {
	clean := p.Pool.Redactor().JSON(text)
	if string(clean) == string(text) {
		return text, nil
	}
	*rec = record.Run{}
	return clean, json.Unmarshal(clean, rec)
}
