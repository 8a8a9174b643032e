package acp

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
)

// Setup returns how a machine without a user gets an agent ready: a shell command that installs
// it, and the environment variable with the key of its usual provider. Either is empty if waza
// knows none.
func Setup(name string) (install, keyEnv string) {
	p, _ := presetNamed(name)
	if strings.HasPrefix(p.install, "npm ") {
		install = p.install
	}
	return install, p.keyEnv
}

// Installed returns the names of the presets whose agents are on the PATH of an environment in
// the form of os.Environ. The caller owns the slice.
func Installed(env []string) []string {
	var names []string
	for i := range presets {
		if _, err := presets[i].command(env, false, ""); err == nil {
			names = append(names, presets[i].name)
		}
	}
	return names
}

// needs returns what preflight looks for, and the programs of the suite's stdio MCP servers,
// which the agent starts.
func needs(s executor.Settings, o *Options) []record.Need {
	p, err := resolve(o, s.Suite)
	if err != nil {
		return nil // no machine has an unknown agent
	}
	if s.Suite.Config.Sandbox.InImage() {
		return nil
	}
	list := p.needs(s.Suite)
	servers := s.Suite.Config.MCPServers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if server, err := mcpServer(name, servers[name]); err == nil && server.Stdio != nil {
			list = append(list, executor.ProgramNeeds(server.Stdio.Command, false)...)
		}
	}
	return list
}

// needs returns the agent if the preset's own command starts it, and otherwise the program of
// the command. If the suite sets PATH, it returns nil, because the PATH of other machines is
// unknown.
func (p *preset) needs(suite *eval.Suite) []record.Need {
	if _, ok := p.env["PATH"]; ok {
		return nil
	}
	program := p.commands[0][0]
	if known, ok := presetNamed(p.preset); ok && known.commands[0][0] == program {
		return []record.Need{{Kind: record.NeedAgent, Name: known.name}}
	}
	ofSuite := strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program)
	if ofSuite {
		program = absolute(program, suite.Dir)
	}
	return executor.ProgramNeeds(program, ofSuite)
}
