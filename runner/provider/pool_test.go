package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	get := func(api API, e Endpoint, vars map[string]string) (string, error) {
		return NewPool(PoolOptions{Getenv: env(vars)}).key(context.Background(), api, e)
	}
	key, err := get(OpenAI, Endpoint{}, map[string]string{"OPENAI_API_KEY": " k1\n"})
	require.NoError(t, err)
	require.Equal(t, "k1", key)
	key, err = get(Anthropic, Endpoint{APIKeyEnv: "MINE"}, map[string]string{"MINE": "k2", "ANTHROPIC_API_KEY": "k1"})
	require.NoError(t, err)
	require.Equal(t, "k2", key)
	key, err = get(OpenAI, Endpoint{BaseURL: "http://127.0.0.1:11434/v1"}, nil)
	require.NoError(t, err, "the user's own server might require no key")
	require.Empty(t, key)
	key, err = get(OpenAI, Endpoint{APIKeyCommand: KeyCommand{"sh", "-c", "echo k3"}}, map[string]string{"OPENAI_API_KEY": "k1"})
	require.NoError(t, err)
	require.Equal(t, "k3", key)
	for text, e := range map[string]Endpoint{
		"$OPENAI_API_KEY is not set":   {},
		"$MINE is not set":             {BaseURL: "http://127.0.0.1:1", APIKeyEnv: "MINE"},
		"printed nothing":              {APIKeyCommand: KeyCommand{"true"}},
		"api_key_command: exit status": {APIKeyCommand: KeyCommand{"sh", "-c", "echo secret-on-stderr >&2; exit 3"}},
		"not found on PATH":            {APIKeyCommand: KeyCommand{"no-such-program-anywhere"}},
		"must print only the API key":  {APIKeyCommand: KeyCommand{"echo", "two words"}},
	} {
		_, err := get(OpenAI, e, nil)
		require.ErrorContains(t, err, text)
		require.Equal(t, Refused, KindOf(err))
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = get(OpenAI, Endpoint{}, map[string]string{"OPENAI_API_KEY": "k\n1"})
	require.ErrorContains(t, err, "contains invalid characters")
}

// The OpenAI key is not sent to a server that does not request it by name.
func TestAzure(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) { hello(w) }}
	pool := NewPool(PoolOptions{Transport: direct{f}, Getenv: withKey})
	c, err := pool.Client(context.Background(), OpenAI,
		Endpoint{BaseURL: "https://x.openai.azure.com/openai/deployments/d/", APIVersion: "2024-10-21"}, "gpt-4o")
	require.NoError(t, err)
	_, err = c.Complete(context.Background(), ask("hi"))
	require.NoError(t, err)
	require.Equal(t, testKey, f.heads[0].Get("Api-Key"))
	require.Empty(t, f.heads[0].Get("Authorization"))
	require.Equal(t, "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", f.urls[0])
}

// A server without keys gets none, whatever the environment contains.
func TestNoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "must-not-leak")
	t.Setenv("ANTHROPIC_API_KEY", "must-not-leak")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "must-not-leak")
	for _, api := range []API{OpenAI, Anthropic} {
		f := &fake{handle: func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusBadRequest) }}
		pool := NewPool(PoolOptions{Transport: direct{f}, Getenv: env(nil)})
		c, err := pool.Client(context.Background(), api, Endpoint{BaseURL: "http://127.0.0.1:1/v1"}, "llama3")
		require.NoError(t, err)
		_, err = c.Complete(context.Background(), ask("hi"))
		require.Equal(t, Invalid, KindOf(err), "%v", err)
		heads, err := json.Marshal(f.heads)
		require.NoError(t, err)
		require.Len(t, f.heads, 1)
		require.NotContains(t, string(heads), "must-not-leak")
	}
}

// A run never exceeds its budget, however many calls run concurrently, and it can use all of it.
func TestBudget(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) { hello(w) }} // 120 tokens each
	b := &Budget{MaxTokens: 2000}
	c := connect(t, OpenAI, f, PoolOptions{Budget: b})
	r := ask("hi")
	r.Params = map[string]any{"max_tokens": 150}
	var over, ok atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 4 {
				_, err := c.Complete(context.Background(), r)
				switch KindOf(err) {
				case OverBudget:
					over.Add(1)
				case "":
					ok.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, b.Spent().Total(), int64(2000))
	require.GreaterOrEqual(t, ok.Load(), int64(15))
	require.Equal(t, int64(64), ok.Load()+over.Load())
	require.Equal(t, int(ok.Load()), f.requests(), "a call over budget is not sent")
	require.Zero(t, b.held.Total())
}

func TestCostBudget(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) { hello(w) }}
	b := &Budget{MaxCost: 0.01}
	c := connect(t, OpenAI, f, PoolOptions{Budget: b})
	r := ask("hi")
	r.Params = map[string]any{"max_tokens": 100}
	var err error
	for err == nil {
		_, err = c.Complete(context.Background(), r)
	}
	require.Equal(t, OverBudget, KindOf(err))
	require.ErrorContains(t, err, "config.max_cost of $0.01")
	require.LessOrEqual(t, b.Spent().CostUSD, 0.01)
	require.Greater(t, b.Spent().CostUSD, 0.008)

	_, err = NewPool(PoolOptions{Budget: b, Getenv: withKey}).Client(context.Background(), OpenAI, Endpoint{}, "nobody-knows-me")
	require.ErrorContains(t, err, `config.max_cost requires a price for model "nobody-knows-me"`)
	require.Equal(t, OverBudget, KindOf(b.Spend(record.Usage{CostUSD: 1})))
}

func TestPrices(t *testing.T) {
	t.Parallel()
	mine := Prices{"llama3": {Input: 1, Output: 2}, "GPT-4o": {Input: 9}, "openrouter/gpt-4.1": {Input: 7}}
	for model, want := range map[string]float64{
		"gpt-4o-mini": 0.15, "gpt-4o": 9, "gpt-4o-2024-08-06": 9, "openai/gpt-4.1": 2, "openrouter/gpt-4.1": 7,
		"claude-sonnet-4-5-20250929": 3, "anthropic/claude-3-5-haiku-latest": 0.8, "llama3": 1, "o3": 2,
	} {
		p, ok := mine.Find(model)
		require.True(t, ok, model)
		require.InDelta(t, want, p.Input, 0, model)
	}
	for _, model := range []string{"gpt-4o-audio", "gpt-9", "", "llama31", "o33"} {
		_, ok := mine.Find(model)
		require.False(t, ok, model)
	}
	var file struct {
		AsOf    string `json:"as_of"`
		Sources []string
		Models  map[string]eval.Price
	}
	require.NoError(t, json.Unmarshal(priceTable, &file))
	_, err := time.Parse(time.DateOnly, file.AsOf)
	require.NoError(t, err)
	require.NotEmpty(t, file.Sources)
	for name, p := range file.Models {
		require.Positive(t, p.Input, name)
		if !strings.Contains(name, "embedding") { // which write nothing
			require.Greater(t, p.Output, p.Input, name)
		}
		require.Equal(t, strings.ToLower(name), name)
		if p.Cached != nil {
			require.Less(t, *p.Cached, p.Input, name)
		}
		if p.CacheWrite != nil {
			require.Greater(t, *p.CacheWrite, p.Input, name)
		}
	}
}

func TestForModel(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		model    string
		fallback API
		api      API
		name     string
	}{
		{"gpt-4o", "", OpenAI, "gpt-4o"}, {"claude-3", "", Anthropic, "claude-3"}, {"claude-3", OpenAI, OpenAI, "claude-3"},
		{"anthropic:claude-3", OpenAI, Anthropic, "claude-3"}, {"openai:x", "", OpenAI, "x"}, {"llama3:8b", "", OpenAI, "llama3:8b"},
		{"anthropic/claude-3", "", OpenAI, "anthropic/claude-3"},
	} {
		api, name := ForModel(tc.model, tc.fallback)
		require.Equal(t, tc.api, api, tc.model)
		require.Equal(t, tc.name, name, tc.model)
	}
}

func FuzzFaultIn(f *testing.F) {
	f.Add(`{"error":{"message":"m","type":"t","code":"c"}}`)
	f.Add(`{"error":"text"}`)
	f.Add(`{"error":{"code":429}}`)
	f.Fuzz(func(t *testing.T, body string) {
		e := faultIn([]byte(body)).error("here")
		if e.Kind == "" || e.Message == "" || len(e.Message) > maxMessage+10 {
			t.Fatalf("%q: %+v", body, e)
		}
		if answer := jsonObject(body); answer != nil && !json.Valid(answer) {
			t.Fatalf("%q: %q", body, answer)
		}
	})
}
