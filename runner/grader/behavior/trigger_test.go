package behavior

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestTrigger(t *testing.T) {
	t.Parallel()
	files := map[string]string{"skills/deploy/SKILL.md": `---
name: azure-deploy
description: |
  Deploys applications to Azure. USE FOR: deploy my app, publish website. DO NOT USE FOR: billing questions.
---
Runs azd and watches the resource group.
`}
	asking := func(prompt string) *grader.Subject {
		return gradertest.Subject("", func(s *grader.Subject) { s.Prompt = prompt })
	}
	positive, negative := "skill_path: skills/deploy/SKILL.md", "skill_path: skills/deploy\nmode: negative"
	gradertest.RunCases(t, "trigger", []gradertest.Case{
		{"triggers", positive, files, asking("Deploy the applications to Azure!"), gradertest.Passes()},
		{
			"only the stop words of microsoft/waza are left out", positive, files,
			asking("Please deploy the applications to Azure, with all of these and those!"),
			gradertest.Scores(0.5, "expected at least the threshold 0.60"),
		},
		{"by a phrase", positive, files, asking("publish this thing quickly on a website tomorrow, friend"), gradertest.Passes()},
		{
			"does not trigger", positive, files, asking("What about billing questions?"),
			gradertest.Scores(0, "expected at least the threshold 0.60"),
		},
		{"correctly does not trigger", negative, files, asking("Write a joke about cats"), gradertest.Passes()},
		{"wrongly triggers", negative, files, asking("deploy to azure"), gradertest.Scores(0, "expected less than the threshold 0.60")},
		{"threshold", positive + "\nthreshold: 0.3", files, asking("deploy cats tomorrow"), gradertest.Verdict{Score: 0.5, Passed: true}},
		{"no prompt", positive, files, asking(""), gradertest.Scores(0, "(none)")},
	})
	gradertest.RunOptions(t, "trigger", []gradertest.OptionCase{
		{"well", positive, "", files},
		{"no skill", "mode: positive", "missing-field: skill_path", nil},
		{"missing", "skill_path: nowhere", "missing-skill: no SKILL.md found", nil},
		{"no words", positive, "missing-skill: no words", map[string]string{"skills/deploy/SKILL.md": "---\n---\n"}},
		{"mode", positive + "\nmode: neutral", "invalid-value: positive, negative", files},
		{"threshold", positive + "\nthreshold: 1.5", "invalid-value: between 0 and 1", files},
		{"always", positive + "\nthreshold: 0", "checks-nothing: every prompt", files},
	})
}

// Letters outside ASCII were not folded, so a prompt and a skill with the same letters shared no
// word.
func TestTriggerFoldsEveryAlphabet(t *testing.T) {
	t.Parallel()
	for _, pair := range gradertest.Spellings {
		for _, s := range []struct{ want, output string }{{pair[0], pair[1]}, {pair[1], pair[0]}} {
			shared, _ := (&skillWords{words: map[string]bool{words(s.want)[0]: true}}).overlap(s.output)
			require.Equal(t, 1.0, shared, s.output)
		}
	}
}
