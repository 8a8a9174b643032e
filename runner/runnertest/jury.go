package runnertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"waza/eval/text"
)

// Jury is an OpenAI-compatible server of models that answer, and of a judge. Model M answers "M:
// PROMPT" to a prompt. The judge uses the best word of [JuryScores] in an output and prefers the
// first of two equal outputs.
type Jury struct {
	// Before is called before a judge answers, with the name of the tool that the judge must
	// call and the text of the request; nil answers at once. ctx ends with the request. A
	// status other than 0 replaces the answer.
	Before func(ctx context.Context, tool, text string) (status int)
	// Answers gives the answer of a model to a prompt; nil means "MODEL: PROMPT".
	Answers func(model, prompt string) string
	// Lenient gives every answer the score 1 in verdicts.
	Lenient atomic.Bool

	mu    sync.Mutex // guards asked
	asked map[string]int
}

// JuryScores are the scores for words. Other outputs get 0.
var JuryScores = map[string]float64{"perfect": 1, "good": 0.8, "fair": 0.5, "poor": 0.25}

// Serve starts the server, and returns its address.
func (j *Jury) Serve(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(j)
	t.Cleanup(srv.Close)
	return srv.URL
}

// Asked counts the requests to the judge, by the names of the tools that it must call and by the
// texts of the comparisons: "compare FIRST | SECOND".
func (j *Jury) Asked() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.asked)
}

var (
	juryTool   = text.Pattern(`submit_\w+`)
	juryOutput = text.Pattern(`(?s)<<<BEGIN output(?: [AB])? (\w+)>>>\n(.*?)\n<<<END`)
)

func (j *Jury) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	var req struct {
		Model    string
		Messages []struct{ Role, Content string }
	}
	if json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text := req.Messages[len(req.Messages)-1].Content
	tool := ""
	if req.Messages[0].Role == "system" {
		tool = juryTool().FindString(req.Messages[0].Content)
	}
	if tool == "" {
		answer := req.Model + ": " + text
		if j.Answers != nil {
			answer = j.Answers(req.Model, text)
		}
		answerWith(w, map[string]any{"content": answer})
		return
	}
	var outputs []string
	for _, m := range juryOutput().FindAllStringSubmatch(text, -1) {
		outputs = append(outputs, m[2])
	}
	j.mu.Lock()
	if j.asked == nil {
		j.asked = map[string]int{}
	}
	j.asked[tool]++
	if len(outputs) == 2 {
		j.asked["compare "+strings.Join(outputs, " | ")]++
	}
	j.mu.Unlock()
	if j.Before != nil {
		if status := j.Before(r.Context(), tool, text); status != 0 {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error":{"message":"no judgement today"}}`)
			return
		}
	}
	answer := juryAnswer(tool, outputs)
	if tool == "submit_verdict" && j.Lenient.Load() {
		answer = map[string]any{"score": 1, "passed": true, "reason": "why not"}
	}
	arguments, err := json.Marshal(answer)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	answerWith(w, map[string]any{
		"tool_calls": []any{map[string]any{"index": 0, "id": "1", "function": map[string]any{"name": tool, "arguments": string(arguments)}}},
	})
}

func juryAnswer(tool string, outputs []string) any {
	switch {
	case tool == "submit_verdict" && len(outputs) == 1:
		s := juryScore(outputs[0])
		return map[string]any{"score": s, "passed": s >= 0.5, "reason": fmt.Sprintf("it is worth %v", s)}
	case tool == "submit_comparison" && len(outputs) == 2:
		winner := "A"
		if juryScore(outputs[1]) > juryScore(outputs[0]) {
			winner = "B"
		}
		return map[string]any{"winner": winner, "reason": winner + " is better"}
	}
	return map[string]any{"strengths": []string{"Most answers are correct."}, "weaknesses": []string{"Some answers are incomplete."}}
}

func juryScore(output string) float64 {
	best := 0.0
	for word, s := range JuryScores {
		if strings.Contains(output, word) {
			best = max(best, s)
		}
	}
	return best
}

func answerWith(w http.ResponseWriter, delta map[string]any) {
	chunk, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": "stop"}}})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "data: %s\n\n", chunk)
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":60,"completion_tokens":40,"total_tokens":100}}`+"\n\ndata: [DONE]\n\n")
}

// JudgeSuite returns a suite of kind judge. The jury at address serves its judge and models.
// config contains further lines of its config, tasks the lines of its tasks.
func JudgeSuite(address, config, tasks string) string {
	return fmt.Sprintf(`-- eval.yaml --
name: answers
kind: judge
config:
  executor: openai
  base_url: %s/v1
  api_key_command: echo %s
  judge_model: judge
  prices: {judge: {input: 1000, output: 500}, m-1: {input: 10, output: 10}, m-2: {input: 10, output: 10}, m-3: {input: 10, output: 10}}
  retry_errors: 0
%s
tasks:
%s
`, address, SecretKey, config, tasks)
}
