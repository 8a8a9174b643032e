package triggers_test

import (
	"path/filepath"
	"testing"

	"waza/eval/dialecttest"
)

func isSuite(path string) bool {
	name := filepath.Base(path)
	return name == "trigger-evals.json" || name == "routing.json" || name == "my_set.json"
}

func TestShapes(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "triggers", isSuite)
}

func FuzzTranslate(f *testing.F) {
	dialecttest.Seed(f, "triggers", isSuite)
	dialecttest.Fuzz(f, filepath.Join("evals", "trigger-evals.json"))
}
