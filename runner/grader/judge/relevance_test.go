package judge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/provider"
	"waza/runner/record"
)

// relevanceServer is a stand-in for both models. The questions that a text answers are its lines, and their vectors their
// numbers.
func relevanceServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/embeddings", &vectorModel{})
	data := regexp.MustCompile(`(?s)<<<BEGIN output \w+>>>\n(.*)\n<<<END`)
	mux.HandleFunc("/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []struct{ Content string } }
		if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.Messages) != 2 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		questions, _ := json.Marshal(map[string]any{"questions": strings.Split(data.FindStringSubmatch(body.Messages[1].Content)[1], "\n")})
		chunk, _ := json.Marshal(map[string]any{
			"choices": []any{map[string]any{"finish_reason": "tool_calls", "delta": map[string]any{"tool_calls": []any{
				map[string]any{"index": 0, "id": "1", "function": map[string]any{"name": "submit_questions", "arguments": string(questions)}},
			}}}},
			"usage": map[string]int{"prompt_tokens": 10, "completion_tokens": 5},
		})
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func relevanceOf(t *testing.T, server *httptest.Server, config string) (*grader.Bound, error) {
	t.Helper()
	suite, diagnostics := gradertest.Load(t, "answer_relevance", strings.ReplaceAll(config, "URL", server.URL), nil)
	require.Empty(t, diagnostics.Errors())
	env := &grader.Env{Suite: suite, Workers: 2}
	env.Providers = provider.NewPool(provider.PoolOptions{Getenv: func(string) string { return "" }})
	t.Cleanup(env.Providers.Close)
	t.Cleanup(env.Close)
	suite.Graders[0].Negate = strings.HasPrefix(config, "# negated")
	return gradertest.Registry.Bind(suite.Graders[0], env)
}

const relevanceModels = "\nmodel: j\nbase_url: URL\nembedding: {model: e, base_url: URL}"

func TestAnswerRelevance(t *testing.T) {
	t.Parallel()
	server := relevanceServer(t)
	for _, c := range []struct {
		name, config, output string
		want                 gradertest.Verdict
	}{
		{"relevant", "question: 1 0", "1 0\n2 0\n4 3", gradertest.Verdict{Score: 2.8 / 3, Passed: true}},
		{"irrelevant", "question: 1 0", "0 1\n3 4\n4 3", gradertest.Scores(1.4/3, "the relevance is 0.47, less than 0.70: the output answers 0 1 / 3 4 / 4 3")},
		{"threshold", "question: 1 0\nthreshold: 0.4", "0 1\n3 4\n4 3", gradertest.Verdict{Score: 1.4 / 3, Passed: true}},
		{"negated", "# negated\nquestion: 1 0", "0 1\n3 4\n4 3", gradertest.Verdict{Score: 1 - 1.4/3, Passed: true}},
		{"negated and empty", "# negated\nquestion: 1 0", " ", gradertest.Scores(0, "the output is empty")},
		{"too few questions", "question: 1 0", "1 0", gradertest.Errors("judge j: no usable answer, asked twice: it gave fewer than three questions")},
		{"no vectors", "question: words", "1 0\n1 0\n1 0", gradertest.Errors("embedding model e: openai at http://127.0.0.1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, err := relevanceOf(t, server, c.config+relevanceModels)
			require.NoError(t, err)
			got := gradertest.RequireVerdict(t, b, gradertest.Subject(c.output), c.want)
			if got.Details != nil {
				require.Equal(t, &record.Usage{InputTokens: 1010, OutputTokens: 5}, got.Usage)
			}
		})
	}
	b, err := relevanceOf(t, server, relevanceModels) // of the prompt
	require.NoError(t, err)
	s := gradertest.Subject("1 0\n1 0\n1 0", func(s *grader.Subject) { s.Prompt = "1 0" })
	before := gradertest.RequireVerdict(t, b, s, gradertest.Passes())
	_, index := b.Recall(s, []record.Grade{before})
	require.Zero(t, index)
	_, err = relevanceOf(t, server, "embedding: {model: e, base_url: URL}")
	require.ErrorContains(t, err, "no judge model is set")
	_, err = relevanceOf(t, server, "model: j\nbase_url: URL\nembedding: {model: e}")
	require.ErrorContains(t, err, "embedding model e: the API key is missing")
}

func TestAnswerRelevanceOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "answer_relevance", []gradertest.OptionCase{
		{"well", "embedding: {model: e}", "", nil},
		{"no model", "question: a", "missing-field: embedding.model is missing, so that there is no embedding model: write model:", nil},
		{"unknown API", "embedding: {model: e, provider: anthropic}", "invalid-value: embedding.provider must be one of", nil},
		{"address", "embedding: {model: e, base_url: x}", "invalid-value: base_url must be an http or https URL", nil},
	})
}
