package triggers_test

import (
	"path/filepath"
	"slices"
	"testing"

	"waza/eval/dialecttest"
)

func isSuite(path string) bool {
	return slices.Contains([]string{
		"trigger-evals.json", "trigger_eval.json", "trigger-eval.json", "trigger_evals.json", "eval_set.json", "routing.json", "my_set.json", "routing_cases.json",
		"triggers.json", "key-triggers.json", "trigger-queries.json", "queries.json",
	}, filepath.Base(path))
}

func TestShapes(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "triggers", isSuite)
}

func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "triggers", isSuite)
	dialecttest.Fuzz(f, filepath.Join("evals", "trigger-evals.json"))
}
