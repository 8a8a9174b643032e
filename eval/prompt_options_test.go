package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

type promptOnlyOptions struct {
	SystemPrompt string `yaml:"system_prompt"`
}

// A system prompt of config that the executor does not take is reported.
func TestSystemPromptWithoutTaker(t *testing.T) {
	t.Parallel()
	v := &eval.Vocabulary{
		Executors: []eval.Kind{{Name: "http"}, {Name: "openai", Options: func() any { return &promptOnlyOptions{} }}},
		Graders:   vocabulary().Graders,
	}
	for executor, want := range map[string]bool{"http": true, "openai": false} {
		file := filepath.Join(t.TempDir(), "eval.yaml")
		require.NoError(t, os.WriteFile(file, []byte("name: t\nconfig: {executor: "+executor+", model: m, system_prompt: Be brief.}\ntasks: [{id: a, prompt: x}]\n"), 0o600))
		_, found, err := eval.Load(file, eval.Options{Vocabulary: v})
		require.NoError(t, err)
		require.Equal(t, want, strings.Contains(fmt.Sprint(found), "system_prompt has no effect with executor http; executors that take it: openai"), found)
	}
}
