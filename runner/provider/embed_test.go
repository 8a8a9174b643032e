package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// embedWith asks a fake for the embeddings of texts.
func embedWith(t *testing.T, api API, f *fake, model string, o PoolOptions) ([][]float64, error) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	if o.Getenv == nil {
		o.Getenv = withKey
	}
	pool := NewPool(o)
	t.Cleanup(pool.Close)
	e, err := pool.Embedder(context.Background(), api, Endpoint{BaseURL: server.URL + "/base"}, model)
	require.NoError(t, err)
	vectors, usage, err := e.Embed(context.Background(), []string{"one <", "two"})
	if err == nil {
		require.Positive(t, usage.InputTokens)
		require.Zero(t, usage.OutputTokens)
	}
	return vectors, err
}

func answers(body string) *fake {
	return &fake{handle: func(w http.ResponseWriter, _ int) { fmt.Fprint(w, body) }}
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	budget := &Budget{MaxCost: 1}
	f := answers(`{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,-0.5]}],"usage":{"prompt_tokens":7,"total_tokens":7}}`)
	vectors, err := embedWith(t, OpenAI, f, "text-embedding-3-large", PoolOptions{Budget: budget})
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1, -0.5}, {0, 1}}, vectors)
	require.Equal(t, "/base/embeddings", f.urls[0])
	require.Equal(t, "Bearer "+testKey, f.heads[0].Get("Authorization"))
	require.Equal(t, map[string]any{"model": "text-embedding-3-large", "input": []any{"one <", "two"}, "encoding_format": "float"}, f.bodies[0])
	require.InDelta(t, 7*0.13/1e6, budget.Spent().CostUSD, 1e-12)
	require.Equal(t, int64(7), budget.Spent().InputTokens)

	f = answers(`{"model":"m","embeddings":[[1],[2]],"prompt_eval_count":3}`)
	vectors, err = embedWith(t, Ollama, f, "m", PoolOptions{})
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1}, {2}}, vectors)
	require.Equal(t, "/base/api/embed", f.urls[0])
	require.Equal(t, map[string]any{"model": "m", "input": []any{"one <", "two"}}, f.bodies[0])
	require.Empty(t, f.heads[0].Get("Authorization"))

	f = &fake{handle: func(w http.ResponseWriter, n int) { // without tokens, after a fault
		if n == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, `{"data":[{"embedding":[1]},{"embedding":[2]}]}`)
	}}
	_, err = embedWith(t, OpenAI, f, "m", PoolOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, f.requests())
}

// Answers that are no embeddings, and rejections, are errors without the key.
func TestEmbedFaults(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:                        "the answer has 0 embeddings for 2 texts",
		`[`:                         "no list of embeddings",
		`{"data":[{"index":0}]}`:    "the answer has 1 embeddings for 2 texts",
		`{"data":[{"index":-1}]}`:   "the index -1",
		`{"data":[{},{"index":5}]}`: "the index 5",
		`{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[1]}]}`: "the index 1",
		`{"data":[{"embedding":[]},{"embedding":[]}]}`:                       "embeddings with 0 and 0 numbers",
		`{"data":[{"embedding":[1]},{"embedding":[1,2]}]}`:                   "embeddings with 1 and 2 numbers",
		`{"data":[{"embedding":[1]},{"embedding":[1e200]}]}`:                 "the number 1e+200",
		`{"data":[{"embedding":"AAAA"},{"embedding":"AAAA"}]}`:               "no list of embeddings",
	} {
		_, err := embedWith(t, OpenAI, answers(body), "m", PoolOptions{})
		require.ErrorContains(t, err, want, body)
		require.Equal(t, Invalid, KindOf(err), body)
		require.ErrorContains(t, err, "openai at http://127.0.0.1")
	}
	refuses := &fake{handle: func(w http.ResponseWriter, _ int) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, testKey)
	}}
	_, err := embedWith(t, OpenAI, refuses, "m", PoolOptions{})
	require.Equal(t, Refused, KindOf(err))
	require.NotContains(t, err.Error(), testKey)

	pool := NewPool(PoolOptions{Getenv: env(nil)})
	t.Cleanup(pool.Close)
	_, err = pool.Embedder(context.Background(), OpenAI, Endpoint{}, "m")
	require.ErrorContains(t, err, "$OPENAI_API_KEY is not set")
	_, err = pool.Embedder(context.Background(), Anthropic, Endpoint{BaseURL: "http://127.0.0.1"}, "m")
	require.ErrorContains(t, err, "has no embeddings")
	e, err := pool.Embedder(context.Background(), Ollama, Endpoint{}, "m")
	require.NoError(t, err)
	_, _, err = e.Embed(context.Background(), []string{strings.Repeat("x", maxEmbedBytes+1)})
	require.ErrorContains(t, err, "a request at most")
}

// Every answer of an API leads to a vector for each text, or to an error.
func FuzzVectors(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,-0.5]}],"usage":{"total_tokens":7}}`), true)
	f.Add([]byte(`{"embeddings":[[1],[2]],"prompt_eval_count":3}`), false)
	f.Fuzz(func(t *testing.T, data []byte, isOpenAI bool) {
		api := Ollama
		if isOpenAI {
			api = OpenAI
		}
		vectors, usage, err := embeddingAPI{api: api}.vectors(data, 2)
		require.GreaterOrEqual(t, usage.InputTokens, int64(0))
		if err == nil {
			require.Len(t, vectors, 2)
			require.NotEmpty(t, vectors[0])
			require.Len(t, vectors[1], len(vectors[0]))
		}
	})
}
