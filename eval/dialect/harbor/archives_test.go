package harbor_test

import (
	"path"
	"testing"

	"waza/eval/dialecttest"
)

func TestArchives(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "harbor", func(file string) bool { return path.Base(file) == "task.toml" })
}
