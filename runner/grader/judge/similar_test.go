package judge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/provider"
	"waza/runner/record"
)

// vectorModel is a stand-in for an embedding model. The vector of a text contains its numbers.
type vectorModel struct {
	mu    sync.Mutex // guards paths
	paths []string
}

func (m *vectorModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Input []string }
	err := json.NewDecoder(r.Body).Decode(&body)
	m.mu.Lock()
	m.paths = append(m.paths, r.URL.Path)
	m.mu.Unlock()
	var data []any
	vectors := [][]float64{}
	for _, text := range body.Input {
		var vector []float64
		for word := range strings.FieldsSeq(text) {
			x, notNumber := strconv.ParseFloat(word, 64)
			if err = notNumber; err != nil {
				break
			}
			vector = append(vector, x)
		}
		data, vectors = append(data, map[string]any{"embedding": vector}), append(vectors, vector)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": {"message": "too many tokens"}}`)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "embeddings": vectors, "usage": map[string]int{"prompt_tokens": 1000}})
}

// similarTo builds a similar grader whose model is at an address.
func similarTo(t *testing.T, address, config string) (*grader.Bound, error) {
	t.Helper()
	suite, diagnostics := gradertest.Load(t, "similar", fmt.Sprintf("base_url: %s\n%s", address, config), nil)
	require.Empty(t, diagnostics.Errors())
	env := &grader.Env{Suite: suite, Workers: 2}
	env.Providers = provider.NewPool(provider.PoolOptions{Getenv: func(string) string { return "" }})
	t.Cleanup(env.Providers.Close)
	t.Cleanup(env.Close)
	if negated, ok := strings.CutPrefix(config, "# negated\n"); ok && negated != "" {
		suite.Graders[0].Negate = true
	}
	return gradertest.Registry.Bind(suite.Graders[0], env)
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	m := &vectorModel{}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	unreachable := httptest.NewServer(nil)
	unreachable.Close()
	for _, c := range []struct {
		name, config, output string
		want                 gradertest.Verdict
	}{
		{"same direction", "references: [1 0]", "5 0", gradertest.Passes()},
		{"at the threshold", "references: [1 0]\nthreshold: 0.6", "3 4", gradertest.Verdict{Score: 0.6, Passed: true}},
		{
			"below", "references: [1 0]", "3 4",
			gradertest.Scores(0.6, "the similarity to the reference is 0.60, less than 0.75", `output: "3 4"`),
		},
		{"opposite", "references: [1 0]", "-1 0", gradertest.Scores(0, "is -1.00")},
		{"no direction", "references: [1 0]", "0 0", gradertest.Scores(0)},
		{"default of negated", "# negated\nreferences: [1 0]", "3 4", gradertest.Verdict{Score: 0.4, Passed: true}},
		{"negated at the threshold", "# negated\nreferences: [1 0]\nthreshold: 0.6", "3 4", gradertest.Verdict{Score: 0.4, Passed: true}},
		{"negated and similar", "# negated\nreferences: [0 1, 1 0]", "1 0", gradertest.Scores(0, "negated")},
		{"first that reaches it", "references: [0 1, 4 3, 1 0]", "1 0", gradertest.Verdict{Score: 0.8, Passed: true}},
		{"most similar", "references: [0 1, 3 4, 0 2]", "1 0", gradertest.Scores(0.6)},
		{"dot", "references: [0.5 1]\nmetric: dot\nthreshold: 0.8", "1 0.25", gradertest.Scores(0.75, "is 0.75, less than 0.80")},
		{"dot above 1", "references: [2 2]\nmetric: dot", "2 2", gradertest.Passes()},
		{"near", "references: [1 1]\nmetric: euclidean\nthreshold: 5", "4 5", gradertest.Verdict{Score: 1.0 / 6, Passed: true}},
		{
			"far", "references: [1 1]\nmetric: euclidean", "2 1",
			gradertest.Scores(0.5, "the distance to the reference is 1.00, more than 0.75"),
		},
		{"nearest", "references: [9 9, 1 1]\nmetric: euclidean", "2 1", gradertest.Scores(0.5)},
		{"negated and far", "# negated\nreferences: [1 1]\nmetric: euclidean", "2 1", gradertest.Verdict{Score: 0.5, Passed: true}},
		{"empty", "references: [1 0]", " \n", gradertest.Scores(0, "the output is empty")},
		{"negated and empty", "# negated\nreferences: [1 0]", "", gradertest.Scores(0, "the output is empty")},
		{"rejected output", "# negated\nreferences: [1 0]", "words", gradertest.Scores(0, "rejects the output: too many tokens")},
		{"rejected references", "references: [words]", "1 0", gradertest.Errors("embedding model m: openai at http://127.0.0.1")},
		{"another length", "references: [1 0]", "1", gradertest.Errors("embeddings with 2 and 1 numbers")},
		{"ollama", "references: [1 0]\nprovider: ollama", "1 0", gradertest.Passes()},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := similarTo(t, server.URL, c.config+"\nmodel: m")
			require.NoError(t, err)
			got := gradertest.RequireVerdict(t, b, gradertest.Subject(c.output), c.want)
			if got.Details != nil {
				require.Equal(t, &record.Usage{InputTokens: 1000}, got.Usage)
			}
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Contains(t, m.paths, "/embeddings")
	require.Contains(t, m.paths, "/api/embed")

	b, err := similarTo(t, unreachable.URL, "references: [1 0]\nmodel: m")
	require.NoError(t, err)
	gradertest.RequireVerdict(t, b, gradertest.Subject("1 0"), gradertest.Errors("connection refused"))
	_, err = similarTo(t, "https://api.openai.com/v1", "references: [1 0]\nmodel: m")
	require.ErrorContains(t, err, "embedding model m: the API key is missing: $OPENAI_API_KEY is not set")
	require.ErrorContains(t, err, "or name a model of this machine: provider: ollama, model: nomic-embed-text")
}

// A recorded result is an answer to the same question.
func TestSimilarRecall(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&vectorModel{})
	t.Cleanup(server.Close)
	s := gradertest.Subject("1 0")
	b, err := similarTo(t, server.URL, "references: [1 0]\nmodel: m")
	require.NoError(t, err)
	before, err := b.Grade(t.Context(), s)
	require.NoError(t, err)
	for config, index := range map[string]int{
		"references: [1 0]\nmodel: m": 0, "references: [0 1]\nmodel: m": -1, "references: [1 0]\nmodel: other": -1,
		"references: [1 0]\nmodel: m\nthreshold: 0.5": -1, "references: [1 0]\nmodel: m\nmetric: dot": -1,
	} {
		again, err := similarTo(t, server.URL, config)
		require.NoError(t, err)
		_, got := again.Recall(s, []record.Grade{before})
		require.Equal(t, index, got, config)
	}
}

func TestSimilarOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "similar", []gradertest.OptionCase{
		{"well", "references: [a]\nmodel: m", "", nil},
		{"nothing", "model: m", "missing-field: references is missing", nil},
		{"no model", "references: [a]", "missing-field: model is missing, so that there is no embedding model: write model: text-embedding-3-small, or provider: ollama", nil},
		{"empty", "references: ['']\nmodel: m", "invalid-value: references[0] is empty", nil},
		{"unknown API", "references: [a]\nmodel: m\nprovider: anthropic", "invalid-value: provider must be one of", nil},
		{"unknown metric", "references: [a]\nmodel: m\nmetric: jaccard", "invalid-value: metric must be one of", nil},
		{"many", "references: [" + strings.Repeat("a, ", maxReferences) + "a]\nmodel: m", "invalid-value: references must have at most 200 texts", nil},
	})
}
