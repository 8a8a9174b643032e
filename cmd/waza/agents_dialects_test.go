//go:build agents && linux

package main_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// Real agents run suites of other tools, as their authors wrote them: skill evals with and without the
// skill, a trigger set, and a Vally suite. The judge of statements is a model.
func TestAgentsDialects(t *testing.T) {
	for _, a := range []realAgent{copilot, opencode} {
		t.Run(a.name, func(t *testing.T) {
			u := userOf(t, a, "dialects/model.yaml")
			if _, err := exec.LookPath("rg"); err != nil && a.name == opencode.name {
				t.Skip("skipped: ripgrep is missing, so opencode loads no skills (apt-get install ripgrep)")
			}
			for _, suite := range []struct {
				file string
				want map[string]record.Verdict
				code int
			}{
				{"greet/evals/evals.json", map[string]record.Verdict{
					"1": record.Passed, "2": record.Failed, "1#baseline": record.Passed, "2#baseline": record.Failed,
				}, 1},
				{"greet/evals/trigger-evals.json", map[string]record.Verdict{
					"Please say hello to Cleo.": record.Passed, "How much is two and two?": record.Passed,
					"Greetings to Dan, in your own words.": record.Failed,
				}, 0}, // trigger tests count only in their metric
				{"vally/eval.yaml", map[string]record.Verdict{"keeps": record.Passed, "forgets": record.Failed}, 1},
			} {
				args := append(slices.Clone(a.chosen), "--sandbox", "off", "--judge-model", "gpt-4", "--trials", "1")
				r, code := u.run(t, append(args, filepath.Join(agentSuites, "dialects", filepath.FromSlash(suite.file)))...)
				got := map[string]record.Verdict{}
				for _, task := range r.Tasks {
					id := task.ID
					if task.Trigger != nil {
						id = task.Trigger.Prompt
					}
					got[id] = task.Verdict
				}
				if !maps.Equal(suite.want, got) {
					logTrials(t, r)
				}
				require.Equal(t, suite.want, got, suite.file)
				require.Equal(t, suite.code, code, suite.file)
			}
		})
	}
}
