package acp

import (
	"fmt"
	"os"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/record"
)

// Judges opens agents as judges: every preset, and the agents in .waza.yaml. The zero value is
// ready to use.
type Judges struct{}

// Check returns an error if the agent cannot judge on this machine. The error states the reason
// and the remedy.
func (Judges) Check(suite *eval.Suite, name string) error {
	p, err := judge(suite, name)
	if err != nil {
		return err
	}
	_, err = p.command(environ(os.Environ(), p.env), suite.Config.Sandbox.InImage(), suite.Dir)
	return err
}

// Needs returns what a machine must have for an agent to judge on it. It returns nil for an
// unknown agent.
func (Judges) Needs(suite *eval.Suite, name string) []record.Need {
	p, err := judge(suite, name)
	if err != nil {
		return nil
	}
	return p.needs(suite)
}

// Open returns an executor that drives an agent as a judge. The agent gets no skills,
// instructions or MCP servers of the suite, and can only call the tools of its trial's servers.
// The caller closes the executor.
func (Judges) Open(s executor.Settings, name string) (executor.Executor, error) {
	if _, err := judge(s.Suite, name); err != nil {
		return nil, err
	}
	effort := s.Suite.Config.JudgeReasoningEffort
	s.Suite = &eval.Suite{Places: s.Suite.Places, Project: s.Suite.Project}
	s.Suite.Config.ReasoningEffort = effort
	e, err := open(s, &Options{Agent: Agent{Name: name}, Permissions: Deny})
	if err != nil {
		return nil, err
	}
	e.(*acp).judges = true
	return e, nil
}

// judge returns the preset of an agent that judges.
func judge(suite *eval.Suite, name string) (preset, error) {
	p, err := resolve(&Options{Agent: Agent{Name: name}}, suite)
	if err == nil {
		return p, nil
	}
	known := agentNames(suite)
	hint := ""
	if near := decode.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return preset{}, fmt.Errorf("unknown agent %q; known agents: %s; .waza.yaml can define more under agents%s",
		name, strings.Join(known, ", "), hint)
}
