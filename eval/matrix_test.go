package eval_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// combinations returns one line per variant.
func combinations(s *eval.Suite) []string {
	var lines []string
	for _, v := range s.Variants {
		var parts []string
		for _, p := range v.Params {
			parts = append(parts, p.Name+"="+eval.ParamText(p.Value))
		}
		options, _ := json.Marshal(v.Options)
		lines = append(lines, fmt.Sprintf("%s: %s %s", strings.Join(parts, " "), v.Executor, options))
	}
	return lines
}

func TestVariants(t *testing.T) {
	t.Parallel()
	s := loadArchive(t, `
-- eval.yaml --
name: x
config:
  executor: openai
  models: [one, two]
  params: {temperature: 1, tone: neutral}
  matrix: {temperature: [0, 0.5], max_turns: [3], style: [formal], tone: [warm]}
tasks: [{id: a, prompt: "be {{style}} and {{ tone }}"}]
`)
	// A parameter that a prompt uses goes to the API only if params names it.
	require.Equal(t, []string{
		`temperature=0 max_turns=3 style=formal tone=warm: openai {"Params":{"temperature":0,"tone":"warm"},"MaxTurns":3}`,
		`temperature=0.5 max_turns=3 style=formal tone=warm: openai {"Params":{"temperature":0.5,"tone":"warm"},"MaxTurns":3}`,
	}, combinations(s))
	require.Equal(t, []string{"one", "two"}, s.Config.Models)

	data, err := json.Marshal(s.Config)
	require.NoError(t, err)
	require.Contains(t, string(data), `"matrix":{"temperature":[0,0.5],"max_turns":[3],"style":["formal"],"tone":["warm"]}`)
	var back eval.Config
	require.NoError(t, json.Unmarshal(data, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(again))
	require.Equal(t, "style", back.Matrix[2].Name)
}

func TestVariantsOfExecutors(t *testing.T) {
	t.Parallel()
	s := loadArchive(t, `
-- eval.yaml --
name: x
config:
  command: [run]
  matrix:
    executor: [acp, command]
    level: [true, 2]
tasks: [{id: a, prompt: hi}]
`)
	require.Equal(t, []string{
		`executor=acp level=true: acp {"Agent":"","Permissions":""}`,
		`executor=acp level=2: acp {"Agent":"","Permissions":""}`,
		`executor=command level=true: command {"Command":["run"],"PromptAs":"stdin","Env":null}`,
		`executor=command level=2: command {"Command":["run"],"PromptAs":"stdin","Env":null}`,
	}, combinations(s))
	require.Equal(t, "WAZA_PARAM_TOP_P", eval.EnvName("top-p"))
	require.Equal(t, "WAZA_PARAM_H_HE", eval.EnvName("höhe"))

	agents := loadArchive(t, `
-- eval.yaml --
name: x
config: {executor: acp, matrix: {agent: [one, two], model: [m, 4.5]}}
tasks: [{id: a, prompt: hi}]
`)
	require.Equal(t, []string{`agent=one: acp {"Agent":"one","Permissions":""}`, `agent=two: acp {"Agent":"two","Permissions":""}`},
		combinations(agents))
	require.Equal(t, []string{"m", "4.5"}, agents.Config.Models)
}

func TestParamsAreVariables(t *testing.T) {
	t.Parallel()
	task := &eval.Task{ID: "a", Vars: map[string]string{"who": "Ada"}}
	vars := eval.TrialVars{Model: "m", Params: map[string]string{"temperature": "0.5"}}
	expand := func(text string, vars eval.TrialVars) string {
		out, err := task.Expand(text, vars, eval.MaxExpandedBytes)
		require.NoError(t, err)
		return out
	}
	require.Equal(t, "Ada m 0.5 0.5 0.5 {{.nothing}}",
		expand("{{who}} {{model}} {{temperature}} {{ .temperature }} {{params.temperature}} {{.nothing}}", vars))
	require.Equal(t, "", expand("{{model}}", eval.TrialVars{}))
}
