package judge

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/provider"
)

// efforts records the effort that judges are asked for.
type efforts struct {
	scripted *scripted
	asked    []string
}

func (e *efforts) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var asked struct {
		Effort string `json:"reasoning_effort"`
	}
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, err
	}
	e.asked = append(e.asked, asked.Effort)
	return e.scripted.RoundTrip(r)
}

// A grader's own effort takes precedence over the effort in config.
func TestJudgesAreAskedForAnEffort(t *testing.T) {
	t.Parallel()
	e := &efforts{scripted: says(`{"score":1,"passed":true,"reason":"good"}`)}
	for _, c := range []struct{ config, options string }{
		{"", "prompt: p"}, {"low", "prompt: p"}, {"low", "prompt: p\nreasoning_effort: xhigh"},
	} {
		suite, diagnostics := gradertest.Load(t, "prompt", c.options, nil)
		require.Empty(t, diagnostics)
		suite.Config.JudgeReasoningEffort = c.config
		env := &grader.Env{Suite: suite, Workers: 1}
		env.Model = "gpt-4o"
		env.Providers = provider.NewPool(provider.PoolOptions{Transport: e, Getenv: func(string) string { return "sk-judge-0123456789" }})
		t.Cleanup(env.Close)
		b, err := gradertest.Registry.Bind(suite.Graders[0], env)
		require.NoError(t, err)
		score, err := b.Grade(t.Context(), gradertest.Subject("x"))
		require.NoError(t, err)
		require.True(t, score.Passed)
	}
	require.Equal(t, []string{"", "low", "xhigh"}, e.asked)
}
