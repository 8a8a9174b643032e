package vally_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waza/eval/dialecttest"
	"waza/eval/discover"
)

func isSuite(path string) bool {
	return discover.IsSuite(path) || strings.Contains(filepath.Base(path), "experiment.")
}

// TestMain sets the variables that suites of the archives use.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"VARIABLE_OF_TEST": "value of the variable", "TOKEN_OF_TEST": "value of the token"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestShapes(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "vally", isSuite)
}

func TestSharedSuites(t *testing.T) {
	t.Parallel()
	dialecttest.Shared(t, "vally", "vally-*/eval.yaml", "vally-*/evals/*/eval.yaml")
}

func FuzzExperiment(f *testing.F) {
	dialecttest.Seed(f, "vally", func(path string) bool { return strings.Contains(path, "experiment.") })
	const eval = "name: e\nenvironment: {skills: [.], env: {A: b}}\nstimuli: [{name: a, prompt: a, config: {model: m}, graders: [{type: completed}]}]\n"
	dialecttest.Fuzz(f, filepath.Join("evals", "experiment.yaml"), map[string]string{"eval.yaml": eval, "other.yaml": eval, "SKILL.md": "---\nname: s\n---\n"})
}

func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "vally", isSuite)
	dialecttest.Fuzz(f, filepath.Join("evals", "eval.yaml"))
}
