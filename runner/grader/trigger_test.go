package grader

import "testing"

func TestTrigger(t *testing.T) {
	t.Parallel()
	files := map[string]string{"skills/deploy/SKILL.md": `---
name: azure-deploy
description: |
  Deploys applications to Azure. USE FOR: deploy my app, publish website. DO NOT USE FOR: billing questions.
---
Runs azd and watches the resource group.
`}
	asking := func(prompt string) *Subject { return subject("", func(s *Subject) { s.Prompt = prompt }) }
	positive, negative := "skill_path: skills/deploy/SKILL.md", "skill_path: skills/deploy\nmode: negative"
	runCases(t, "trigger", []graderCase{
		{"triggers", positive, files, asking("Please deploy the applications to Azure!"), passes()},
		{"by a phrase", positive, files, asking("publish this thing quickly on a website tomorrow, friend"), passes()},
		{"does not", positive, files, asking("What about billing questions?"), scores(0, "less than the threshold 0.60")},
		{"rightly does not", negative, files, asking("Tell a joke about cats"), passes()},
		{"wrongly does", negative, files, asking("deploy to azure"), scores(0, "should not")},
		{"threshold", positive + "\nthreshold: 0.3", files, asking("deploy cats tomorrow"), verdict{score: 0.5, passed: true}},
		{"no prompt", positive, files, asking(""), scores(0, "(none)")},
	})
	runOptions(t, "trigger", []optionCase{
		{"well", positive, "", files},
		{"no skill", "mode: positive", "missing-field: skill_path", nil},
		{"missing", "skill_path: nowhere", "missing-skill: no SKILL.md there", nil},
		{"no words", positive, "missing-skill: no words", map[string]string{"skills/deploy/SKILL.md": "---\n---\n"}},
		{"mode", positive + "\nmode: neutral", "invalid-value: positive, negative", files},
		{"threshold", positive + "\nthreshold: 1.5", "invalid-value: between 0 and 1", files},
		{"always", positive + "\nthreshold: 0", "checks-nothing: every prompt", files},
	})
}
