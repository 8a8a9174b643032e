package promptfoo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

const replaceable = `
providers:
  - {id: https, label: api, prompts: [one], config: {url: 'https://example.com', body: {a: '{{prompt}}'}, transformResponse: json.a}}
  - {id: 'openai:gpt-5', prompts: [two]}
  - {id: 'openai:gpt-5-mini', prompts: [two]}
prompts: [{id: one, raw: '1'}, {id: two, raw: '2'}, {id: three, raw: '3'}]
defaultTest: {options: {provider: file://judge.js}}
tests: [{assert: [{type: llm-rubric, value: kind}]}]
`

// An agent, an executor and a judge that the caller chooses take the places of providers and judges of the file, also of
// those that waza cannot ask.
func TestChosen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "promptfooconfig.yaml")
	require.NoError(t, os.WriteFile(path, []byte(replaceable), 0o600))
	load := func(o eval.Options) *eval.Suite {
		suite, diagnostics, err := eval.Load(path, o)
		require.NoError(t, err)
		require.Empty(t, diagnostics.Errors())
		return suite
	}
	prompts := func(s *eval.Suite) (list []string) {
		for _, task := range s.Tasks {
			list = append(list, task.Inputs.Prompt)
		}
		return list
	}
	s := load(eval.Options{})
	require.Len(t, s.Config.Cells, 3)
	require.Equal(t, []string{"1", "2"}, prompts(s))
	require.Equal(t, [][]string{{"api"}, {"gpt-5", "gpt-5-mini"}}, [][]string{s.Tasks[0].Cells, s.Tasks[1].Cells})
	require.Contains(t, s.Tasks[0].Blocked, "--judge-model MODEL")

	for _, o := range []eval.Options{{JudgeModel: "gpt-5"}, {JudgeAgent: "claude-code"}} {
		s = load(o)
		require.Empty(t, s.Tasks[0].Blocked)
		require.Equal(t, "prompt", s.Tasks[0].Effective[0].Type)
		require.NotEmpty(t, s.Tasks[0].Effective[0].Transform, "transformResponse")
	}

	s = load(eval.Options{Executor: "mock", JudgeModel: "gpt-5"})
	require.Empty(t, s.Config.Cells)
	require.Equal(t, []string{"gpt-5", "gpt-5-mini"}, s.Config.Models)
	require.Equal(t, []string{"1", "2"}, prompts(s), "all prompts that a provider gets")
	require.Empty(t, s.Tasks[0].Effective[0].Transform, "the executor has no response of HTTP")

	s = load(eval.Options{Agent: "claude-code", JudgeModel: "gpt-5"})
	require.Empty(t, s.Config.Models)
	require.Equal(t, []string{"1", "2"}, prompts(s))
}
