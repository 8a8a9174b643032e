package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/internal/keys"
)

func get(env []string, name string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

func TestWithholdReplacesKeysAndAddresses(t *testing.T) {
	t.Parallel()
	env := []string{
		"PATH=/bin", "OPENAI_API_KEY=sk-first", "OPENAI_API_KEY=sk-real-0123456789", "CONFIG={\"key\":\"sk-real-0123456789\"}",
		"ANTHROPIC_API_KEY= ant-real-1234 ", "ANTHROPIC_AUTH_TOKEN=ant-other-1234", "ANTHROPIC_BASE_URL=https://gate.example/a%2Fb/?x=1",
		"GEMINI_API_KEY=", "MY_LLM_API_KEY=mine-12345678", "MY_LLM_BASE_URL=http://127.0.0.1:4000/v1",
	}
	w := keys.Withhold(env, "127.0.0.1:3128")
	require.Empty(t, w.Remaining)
	require.Equal(t, "/bin", get(w.Env, "PATH"))
	for _, kv := range w.Env {
		require.NotContains(t, kv, "real")
		require.NotContains(t, kv, "ant-other")
		require.NotContains(t, kv, "mine")
		require.NotContains(t, kv, "sk-first")
	}
	require.Equal(t, "http://127.0.0.1:3128/openai/v1", get(w.Env, "OPENAI_BASE_URL"))
	require.Equal(t, "http://127.0.0.1:3128/anthropic/a%2Fb", get(w.Env, "ANTHROPIC_BASE_URL"))
	require.Equal(t, "http://127.0.0.1:3128/env-my-llm/v1", get(w.Env, "MY_LLM_BASE_URL"))
	require.Empty(t, get(w.Env, "GOOGLE_GEMINI_BASE_URL"))

	require.Len(t, w.Keys, 4)
	openAI := w.Keys[0]
	require.Equal(t, "openai", openAI.Service)
	require.Equal(t, "https://api.openai.com/v1", openAI.BaseURL)
	require.Equal(t, "sk-real-0123456789", openAI.Secret())
	require.Equal(t, openAI.Placeholder, get(w.Env, "OPENAI_API_KEY"))
	require.Equal(t, `{"key":"`+openAI.Placeholder+`"}`, get(w.Env, "CONFIG"))
	require.True(t, strings.HasPrefix(openAI.Placeholder, "sk-waza-"))
	require.Equal(t, "https://gate.example/a%2Fb", w.Keys[1].BaseURL)
	require.NotEqual(t, w.Keys[1].Placeholder, w.Keys[2].Placeholder)
	require.Equal(t, "OPENAI_API_KEY=sk-first", env[1])

	again := keys.Withhold(env, "127.0.0.1:3128")
	require.NotEqual(t, openAI.Placeholder, again.Keys[0].Placeholder)
}

// Codex ignores OPENAI_BASE_URL.
func TestWithholdConfiguresCodex(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"":                                  `{"openai_base_url":"http://127.0.0.1:1/openai/v1"}`,
		`{"model":"gpt-6","mcp":{"a":[1]}}`: `{"mcp":{"a":[1]},"model":"gpt-6","openai_base_url":"http://127.0.0.1:1/openai/v1"}`,
		`{"openai_base_url":"http://x"}`:    `{"openai_base_url":"http://127.0.0.1:1/openai/v1"}`,
		`{"model_providers":{"a":{"base_url":"https://api.openai.com/v1/","env_key":"OPENAI_API_KEY","n":1},"b":{"base_url":"https://b.example","env_key":"OPENAI_API_KEY"}}}`: `{"model_providers":{` +
			`"a":{"base_url":"http://127.0.0.1:1/openai/v1","env_key":"OPENAI_API_KEY","n":1},"b":{"base_url":"https://b.example","env_key":"OPENAI_API_KEY"}},` +
			`"openai_base_url":"http://127.0.0.1:1/openai/v1"}`,
		"nonsense": "nonsense",
		"null":     "null",
	} {
		w := keys.Withhold([]string{"OPENAI_API_KEY=sk-0123456789", "CODEX_CONFIG=" + config}, "127.0.0.1:1")
		require.Equal(t, want, get(w.Env, "CODEX_CONFIG"))
	}
	require.Equal(t, []string{"A=b"}, keys.Withhold([]string{"A=b"}, "127.0.0.1:1").Env)
}

func TestWithholdReportsRemainingKeys(t *testing.T) {
	t.Parallel()
	env := []string{
		"GITHUB_TOKEN=gh-123456789", "COPILOT_PROVIDER_API_KEY=x-123456789", "GROQ_API_KEY=g-123456789",
		"OPENAI_API_KEY=with space", "ANTHROPIC_API_KEY=a-123456789", "ANTHROPIC_BASE_URL=ftp://example.com",
	}
	w := keys.Withhold(env, "127.0.0.1:1")
	require.Equal(t, env, w.Env)
	require.Empty(t, w.Keys)
	require.Equal(t, []string{
		"ANTHROPIC_API_KEY", "COPILOT_PROVIDER_API_KEY", "GITHUB_TOKEN", "GROQ_API_KEY", "OPENAI_API_KEY",
	}, w.Remaining)
}

func TestTextsOfKeysContainNoKey(t *testing.T) {
	t.Parallel()
	key := keys.New(keys.OpenAI, "https://example.com", "the-secret")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{key, &key, []keys.Key{key}, struct{ K keys.Key }{key}} {
			text := fmt.Sprintf(verb, v)
			require.NotContains(t, text, "the-secret", verb)
			require.NotContains(t, text, fmt.Sprintf("%x", "the-secret"), verb)
		}
	}
}

func FuzzWithhold(f *testing.F) {
	f.Add("OPENAI_API_KEY=sk-0123456789\x01A=sk-0123456789")
	f.Add("X_API_KEY=0123456789\x01X_BASE_URL=http://h/%41?q#f")
	f.Fuzz(func(t *testing.T, text string) {
		env := strings.Split(text, "\x01")
		w := keys.Withhold(env, "127.0.0.1:1")
		for _, key := range w.Keys {
			if secret := key.Secret(); len(secret) >= 8 && !strings.Contains(key.BaseURL, secret) && !strings.Contains(`{"openai_base_url":"http://127.0.0.1:1/`+key.Service, secret) {
				for _, kv := range w.Env {
					_, value, _ := strings.Cut(kv, "=")
					require.NotContains(t, strings.ReplaceAll(value, key.Placeholder, ""), secret)
				}
			}
		}
	})
}
