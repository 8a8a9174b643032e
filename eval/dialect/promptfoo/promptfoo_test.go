package promptfoo_test

import (
	"path"
	"strings"
	"testing"

	"waza/eval/dialecttest"
)

func isSuite(file string) bool { return strings.HasPrefix(path.Base(file), "promptfooconfig") }

func TestTranslate(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, "promptfoo", isSuite)
}
