package runnertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Model is a server with OpenAI's API whose answers come from a test.
type Model struct {
	// URL is its base_url.
	URL string

	mu       sync.Mutex // guards the field below
	requests []Asked
}

// Asked is a request to a [Model].
type Asked struct {
	Model       string
	System      string
	Prompt      string // the last message of the user
	Temperature *float64
	Tools       []string // their names
	Results     []string // of the tools that were called since the last message of the user
	Said        []string // messages of the user and the model, without calls and results
	// GaveUp is closed when no client waits for the answer any more.
	GaveUp <-chan struct{}
}

// Answer is the answer of a [Model]: a text, perhaps in parts, or the arguments of a tool call.
// A status other than 0 is an HTTP error.
type Answer struct {
	Text         string
	Parts        []string // used instead of Text
	Tool         string
	Arguments    any
	InputTokens  int
	OutputTokens int
	Status       int
}

// NewModel starts a server that ends with the test. Several goroutines call answer.
func NewModel(t *testing.T, answer func(Asked) Answer) *Model {
	t.Helper()
	m := &Model{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := readAsked(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked.GaveUp = r.Context().Done()
		m.mu.Lock()
		m.requests = append(m.requests, asked)
		m.mu.Unlock()
		a := answer(asked)
		if a.Status != 0 {
			http.Error(w, `{"error":{"message":"`+http.StatusText(a.Status)+`"}}`, a.Status)
			return
		}
		a.write(w)
	}))
	t.Cleanup(server.Close)
	m.URL = server.URL + "/v1"
	return m
}

// Requests returns the requests so far.
func (m *Model) Requests() []Asked {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Asked(nil), m.requests...)
}

func readAsked(r *http.Request) (Asked, error) {
	var body struct {
		Model       string
		Temperature *float64
		Messages    []struct{ Role, Content string }
		Tools       []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return Asked{}, err
	}
	a := Asked{Model: body.Model, Temperature: body.Temperature}
	for _, m := range body.Messages {
		switch m.Role {
		case "system", "developer":
			a.System = m.Content
		case "user":
			a.Prompt, a.Results = m.Content, nil
			a.Said = append(a.Said, m.Content)
		case "tool":
			a.Results = append(a.Results, m.Content)
		case "assistant":
			if m.Content != "" {
				a.Said = append(a.Said, m.Content)
			}
		}
	}
	for _, t := range body.Tools {
		a.Tools = append(a.Tools, t.Function.Name)
	}
	return a, nil
}

func (a *Answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	reason := "stop"
	var deltas []map[string]any
	for _, part := range a.Parts {
		deltas = append(deltas, map[string]any{"role": "assistant", "content": part})
	}
	if len(deltas) == 0 {
		deltas = append(deltas, map[string]any{"role": "assistant", "content": a.Text})
	}
	if a.Tool != "" {
		arguments, _ := json.Marshal(a.Arguments)
		reason = "tool_calls"
		deltas[0] = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": "call-1", "type": "function", "function": map[string]any{"name": a.Tool, "arguments": string(arguments)},
		}}}
	}
	send := func(v any) {
		b, _ := json.Marshal(v)
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	for _, delta := range deltas {
		send(map[string]any{
			"id": "1", "object": "chat.completion.chunk",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}},
		})
	}
	send(map[string]any{
		"id": "1", "object": "chat.completion.chunk",
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}},
	})
	send(map[string]any{
		"id": "1", "choices": []any{},
		"usage": map[string]any{
			"prompt_tokens": a.InputTokens, "completion_tokens": a.OutputTokens,
			"total_tokens": a.InputTokens + a.OutputTokens,
		},
	})
	fmt.Fprint(w, "data: [DONE]\n\n")
}
