package plan

import (
	"encoding/json"
	"os"

	"waza/runner/executor"
	"waza/runner/record"
)

// Inherited is what the programs of a run get of this process's environment.
func (p *Plan) Inherited() []string { return p.Config.Inherited(os.Environ()) }

// learnSecrets makes known to the run's redactor what nothing of the run may
// show: keys in the environment of its agents, graders and hooks, and those that
// the suite hands to the executor and to MCP servers.
func learnSecrets(p *Plan) {
	env := os.Environ()
	for _, t := range p.Tasks {
		env = appendEnv(env, t.Inputs.Environment)
	}
	for _, c := range p.cells {
		if o, ok := c.Settings.Options.(executor.Environment); ok {
			env = appendEnv(env, o.Environment())
		}
	}
	for _, server := range p.Config.MCPServers {
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
	p.Pool.Redactor().Learn(env)
}

func appendEnv(env []string, more map[string]string) []string {
	for k, v := range more {
		env = append(env, k+"="+v)
	}
	return env
}

// Redact takes keys out of a record before it is written: a suite may hold them
// in the settings of MCP servers. The record is changed with its text.
func (p *Plan) Redact(rec *record.Run, text []byte) ([]byte, error) {
	clean := p.Pool.Redactor().JSON(text)
	if string(clean) == string(text) {
		return text, nil
	}
	*rec = record.Run{}
	return clean, json.Unmarshal(clean, rec)
}
