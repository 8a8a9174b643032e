package scaffold

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/runner/executor/acp"
)

// TestWorkflow reads the workflows of all agents as GitHub does.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	project := &eval.Project{}
	for _, agent := range append(acp.AgentNames(nil), "") {
		for _, commit := range []string{"", "0123456789abcdef0123456789abcdef01234567"} {
			w, err := Options{Commit: commit}.newWorkflow("my skills", "evals", project, agent)
			require.NoError(t, err)
			var file struct {
				Jobs map[string]struct {
					Steps []struct {
						Uses, Run string
						With, Env map[string]string
					}
				}
			}
			text := render("workflow.yml", w)
			require.NoError(t, yaml.Unmarshal([]byte(text), &file), text)
			steps := file.Jobs["eval"].Steps
			runs := steps[len(steps)-2]
			if commit == "" {
				commit = "COMMIT"
			}
			require.Equal(t, "OWNER/waza/.github/actions/waza@"+commit, runs.Uses)
			require.Equal(t, "evals", runs.With["suites"])
			install, key := acp.Setup(agent)
			require.Equal(t, install != "", len(steps) == 4, text)
			require.Contains(t, runs.With["args"], "--trials 5")
			require.Equal(t, agent != "", runs.With["args"] == "--trials 5 --agent "+agent, text)
			require.Equal(t, key != "", len(runs.Env) == 1, text)
			if key != "" {
				require.Equal(t, "${{ secrets."+key+" }}", runs.Env[key])
			}
		}
	}
}
