package promptfoo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// Small files whose cases need much memory are errors.
func TestExpandedTooFar(t *testing.T) {
	t.Parallel()
	const head = "providers: [openai:gpt-4o]\n"
	word := strings.Repeat("x", 1000)
	for name, suite := range map[string]string{
		"prompts":   fmt.Sprintf("prompts: ['%s']\ntests:\n  - vars: {a: %s, b: [%s]}\n", strings.Repeat("{{a}}", 1000), word, strings.Repeat("x, ", 400)),
		"variables": variablesOfVariables(word),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "promptfooconfig.yaml")
			require.NoError(t, os.WriteFile(file, []byte(head+suite), 0o600))
			_, found, err := eval.Load(file, eval.Options{})
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(found.Errors()), "waza cannot translate the configuration: its cases need more than 256 MiB")
		})
	}
}

// variablesOfVariables returns a suite in which each of many variables contains a long one.
func variablesOfVariables(word string) string {
	suite := "prompts: [x]\ntests:\n  - vars:\n      long: " + strings.Repeat(word, 1000) + "\n"
	for i := range 400 {
		suite += fmt.Sprintf("      v%d: '{{long}}'\n", i)
	}
	return suite
}
