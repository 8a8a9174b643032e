package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a provider with either API. The test writes its answers.
type fake struct {
	handle func(w http.ResponseWriter, n int) // n counts requests from 1

	mu     sync.Mutex // guards the fields below
	bodies []map[string]any
	heads  []http.Header
	urls   []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body map[string]any
	_ = json.Unmarshal(raw, &body)
	f.mu.Lock()
	f.bodies, f.heads, f.urls = append(f.bodies, body), append(f.heads, r.Header.Clone()), append(f.urls, r.URL.String())
	n := len(f.bodies)
	f.mu.Unlock()
	f.handle(w, n)
}

func (f *fake) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.bodies)
}

// env returns an environment with only these variables.
func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

const testKey = "sk-test-0123456789"

var withKey = env(map[string]string{"OPENAI_API_KEY": testKey, "ANTHROPIC_API_KEY": testKey})

// connect starts the fake and returns a client of it.
func connect(t *testing.T, api API, f *fake, o PoolOptions) Client {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	if o.Getenv == nil {
		o.Getenv = withKey
	}
	pool := NewPool(o)
	t.Cleanup(pool.Close)
	base := server.URL
	if api == OpenAI {
		base += "/v1"
	}
	c, err := pool.Client(context.Background(), api, Endpoint{BaseURL: base}, "gpt-4o")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// direct passes requests to a handler without a network, so that it works within a synctest
// bubble.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	res := w.Result()
	res.Request = r
	return res, nil
}

// send writes events of a stream, each "data" or "event\ndata".
func send(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprintf(w, "%s\n\n", e)
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func chunk(delta, finish string) string {
	reason := "null"
	if finish != "" {
		reason = fmt.Sprintf("%q", finish)
	}
	return fmt.Sprintf(`data: {"id":"1","model":"gpt-4o-2024-08-06","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`,
		delta, reason)
}

const usageChunk = `data: {"id":"1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40}}}`

// hello writes a complete answer of an OpenAI-compatible API.
func hello(w http.ResponseWriter) {
	send(w, chunk(`{"role":"assistant","content":""}`, ""), chunk(`{"content":"hel"}`, ""),
		chunk(`{"content":"lo"}`, "stop"), usageChunk, "data: [DONE]")
}

func claude(events ...string) []string {
	out := make([]string, len(events))
	for i, e := range events {
		var head struct{ Type string }
		_ = json.Unmarshal([]byte(e), &head)
		out[i] = "event: " + head.Type + "\ndata: " + e
	}
	return out
}

func ask(text string) *Request {
	return &Request{Messages: []Message{{Role: User, Text: text}}}
}
