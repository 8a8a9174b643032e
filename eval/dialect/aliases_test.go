package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// Aliases that contain themselves, and those that expand a short file to a billion values, must
// neither stop the process nor use much memory.
func TestHostileAliases(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("x-0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "x-%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	for name, text := range map[string]string{
		"promptfooconfig.yaml": "providers: [openai:gpt-4o]\nprompts: [x]\nevaluateOptions: {repeat: VALUE, maxConcurrency: VALUE}\n" +
			"tests: [{description: VALUE, vars: {a: VALUE}, assert: [{type: contains, value: VALUE, weight: VALUE}, VALUE]}]\n",
		"evals.yaml":    "skill_name: VALUE\nevals: [{id: VALUE, prompt: x, files: VALUE, expectations: VALUE, checks: [{groups: VALUE}]}]\n",
		"triggers.yaml": "skill: VALUE\npass_threshold: VALUE\ncases: [{query: x, should_trigger: true, reason: VALUE}]\n",
	} {
		for kind, value := range map[string][2]string{"loop": {"y: &loop [*loop]\n", "*loop"}, "bomb": {bomb.String(), "*a8"}} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), name)
				require.NoError(t, os.WriteFile(file, []byte(value[0]+strings.ReplaceAll(text, "VALUE", value[1])), 0o600))
				s, _, err := eval.Load(file, eval.Options{})
				require.NoError(t, err)
				if s != nil {
					require.NotEmpty(t, s.Format)
					_, _ = s.Node() // may refuse
				}
			})
		}
	}
}
