package scaffold

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/eval"
	"waza/runner/executor/acp"
)

// workflowFile is the path of the workflow in a project.
const workflowFile = ".github/workflows/eval.yml"

// workflow is the data of the template of the workflow. Empty fields are unknown; the file says
// how to fill them in.
type workflow struct {
	Skills, Evals string
	// Commit of this program. The action builds waza from its own commit.
	Commit string
	// Agent is the agent to run, Install the command that installs it, and Key the variable with
	// its key.
	Agent, Install, Key string
}

// agentFlag selects the agent of the workflow.
func agentFlag() cli.Flag {
	return &cli.StringFlag{
		Name:        "agent",
		Usage:       "let the workflow install the agent `NAME`, pass its key and run the suites with it",
		DefaultText: "none; the workflow shows how",
	}
}

// newWorkflow returns the workflow of a project, which can be nil, for an agent, which can be
// empty.
func (o Options) newWorkflow(skills, evals string, p *eval.Project, agent string) (workflow, error) {
	w := workflow{Skills: skills, Evals: evals, Commit: o.Commit, Agent: agent}
	if agent == "" {
		return w, nil
	}
	if known := acp.AgentNames(p); !slices.Contains(known, agent) {
		return w, exit.Usagef("known agents: "+strings.Join(known, ", "), "--agent: unknown agent %q", agent)
	}
	w.Install, w.Key = acp.Setup(agent)
	return w, nil
}
