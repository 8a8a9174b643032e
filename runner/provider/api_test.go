package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

func TestOpenAIStreams(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) { hello(w) }}
	c := connect(t, OpenAI, f, PoolOptions{})
	r := ask("hi")
	r.System = "be brief"
	r.Params = map[string]any{"temperature": 0.5, "a.b": 1}
	reply, err := c.Complete(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, "hello", reply.Message.Text)
	require.Equal(t, StopEnd, reply.Stop)
	require.Equal(t, "gpt-4o-2024-08-06", reply.Model)
	require.Equal(t, int64(100), reply.Usage.InputTokens)
	require.Equal(t, int64(40), reply.Cached.Read)
	require.InDelta(t, (60*2.5+40*1.25+20*10)/1e6, reply.Usage.CostUSD, 1e-12)
	require.Positive(t, reply.FirstToken)
	require.GreaterOrEqual(t, reply.Duration, reply.FirstToken)

	require.Equal(t, "Bearer "+testKey, f.heads[0].Get("Authorization"))
	require.Equal(t, "/v1/chat/completions", f.urls[0])
	body := f.bodies[0]
	require.Equal(t, true, body["stream"])
	require.InDelta(t, 0.5, body["temperature"], 0)
	require.InDelta(t, 1, body["a.b"], 0)
	require.Equal(t, map[string]any{"include_usage": true}, body["stream_options"])
	require.Len(t, body["messages"], 2)
}

func TestOpenAIToolCalls(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, n int) {
		if n > 1 {
			hello(w)
			return
		}
		send(w,
			chunk(`{"reasoning_content":"let me see"}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\""}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":":\"Oslo\"}"}},{"index":1,"id":"b",`+
				`"function":{"name":"time","arguments":""}}]}`,
				""),
			chunk(`{"tool_calls":[{"index":1,"id":"c","function":{"name":"odd","arguments":"{oops"}}]}`, "tool_calls"),
			"data: [DONE]")
	}}
	c := connect(t, OpenAI, f, PoolOptions{})
	r := ask("weather?")
	r.Tools = []Tool{{Name: "weather", Description: "reports", Parameters: map[string]any{"type": "object"}}, {Name: "time"}}
	reply, err := c.Complete(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, StopCalls, reply.Stop)
	require.Equal(t, "let me see", reply.Thought)
	calls := reply.Message.Calls
	require.Len(t, calls, 3)
	require.JSONEq(t, `{"city":"Oslo"}`, string(calls[0].Arguments))
	require.JSONEq(t, `{}`, string(calls[1].Arguments))
	require.True(t, calls[2].Malformed)
	require.JSONEq(t, `"{oops"`, string(calls[2].Arguments))
	require.True(t, reply.Estimated, "the server counted nothing")
	require.Positive(t, reply.Usage.OutputTokens)

	r.Messages = append(r.Messages, reply.Message,
		Message{Role: ToolRole, Results: []Result{{ID: "a", Text: "cold"}, {ID: "b", Text: "noon"}, {ID: "c", Text: "?", IsError: true}}})
	_, err = c.Complete(context.Background(), r)
	require.NoError(t, err)
	sent, err := json.Marshal(f.bodies[1]["messages"])
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"role":"user","content":"weather?"},
		{"role":"assistant","tool_calls":[
			{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}},
			{"id":"b","type":"function","function":{"name":"time","arguments":"{}"}},
			{"id":"c","type":"function","function":{"name":"odd","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"cold"},
		{"role":"tool","tool_call_id":"b","content":"noon"},
		{"role":"tool","tool_call_id":"c","content":"?"}]`, string(sent))
}

const claudeStart = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant",` +
	`"model":"claude-x","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":5,` +
	`"cache_creation_input_tokens":2,"output_tokens":1}}}`

func TestAnthropicStreams(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) {
		send(w, claude(claudeStart, `{"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hmm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SIG"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"weather","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"Oslo\"}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":30}}`,
			`{"type":"message_stop"}`)...)
	}}
	c := connect(t, Anthropic, f, PoolOptions{})
	r := ask("weather?")
	r.System = "be brief"
	r.Params = map[string]any{"max_tokens": 77}
	r.Tools = []Tool{
		{
			Name: "weather",
			Parameters: map[string]any{
				"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
				"required": []any{"city"},
			},
		},
	}
	reply, err := c.Complete(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, "I look", reply.Message.Text)
	require.Equal(t, "hmm", reply.Thought)
	require.Equal(t, StopCalls, reply.Stop)
	require.JSONEq(t, `{"city":"Oslo"}`, string(reply.Message.Calls[0].Arguments))
	require.Equal(t, record.Usage{InputTokens: 17, OutputTokens: 30, CostUSD: reply.Usage.CostUSD}, reply.Usage)
	require.Equal(t, Cached{Read: 5, Written: 2}, reply.Cached)
	require.Equal(t, testKey, f.heads[0].Get("X-Api-Key"))
	require.Empty(t, f.heads[0].Get("Authorization"))
	require.Equal(t, "/v1/messages", f.urls[0])
	require.InDelta(t, 77, f.bodies[0]["max_tokens"], 0)

	r.Messages = append(r.Messages, reply.Message, Message{Role: ToolRole, Results: []Result{{ID: "t1", Text: "cold", IsError: true}}})
	_, err = c.Complete(context.Background(), r)
	require.NoError(t, err)
	sent, err := json.Marshal(f.bodies[1]["messages"])
	require.NoError(t, err)
	require.Contains(t, string(sent), `"signature":"SIG"`, "thoughts go back as they came")
	require.Contains(t, string(sent), `"is_error":true`)
	tools, err := json.Marshal(f.bodies[1]["tools"])
	require.NoError(t, err)
	require.Contains(t, string(tools), `"required":["city"]`)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	answer := &Answer{
		Name:   "verdict",
		Schema: map[string]any{"type": "object", "properties": map[string]any{"score": map[string]any{"type": "number"}}},
	}
	toolCall := func(w http.ResponseWriter, _ int) {
		send(w, chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"verdict","arguments":"{\"score\":1}"}}]}`, "stop"))
	}
	text := func(s string) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, _ int) {
			quoted, _ := json.Marshal(s)
			send(w, chunk(`{"content":`+string(quoted)+`}`, "stop"))
		}
	}
	for name, tc := range map[string]struct {
		handle func(http.ResponseWriter, int)
		schema bool
		want   string
	}{
		"tool":       {toolCall, false, `{"score":1}`},
		"text":       {text(`{"score":1}`), true, `{"score":1}`},
		"fence":      {text("```json\n{\"score\":1}\n```\n"), false, `{"score":1}`},
		"prose":      {text("the score is {\"score\":1}"), false, ""},
		"not object": {text("[1]"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{handle: tc.handle}
			r := ask("judge")
			a := *answer
			a.AsSchema = tc.schema
			r.Answer = &a
			reply, err := connect(t, OpenAI, f, PoolOptions{}).Complete(context.Background(), r)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(reply.Answer))
			if tc.schema {
				require.Equal(t, "json_schema", f.bodies[0]["response_format"].(map[string]any)["type"])
			} else {
				require.NotNil(t, f.bodies[0]["tool_choice"])
			}
		})
	}
}

// Each API has its own parameter for the effort. The suite's params override it.
func TestEffort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api    API
		params map[string]any
		own    string
		want   string
	}{
		{OpenAI, nil, "", `{"reasoning_effort":"high"}`},
		{Anthropic, nil, "", `{"output_config":{"effort":"high"}}`},
		{OpenAI, nil, "low", `{"reasoning_effort":"low"}`},
		{OpenAI, map[string]any{"reasoning_effort": "minimal"}, "", `{"reasoning_effort":"minimal"}`},
		{Anthropic, map[string]any{"output_config": map[string]any{"effort": "max"}}, "", `{"output_config":{"effort":"max"}}`},
	} {
		f := &fake{handle: func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusBadRequest) }}
		r := ask("x")
		r.Params, r.Effort = c.params, c.own
		_, err := WithEffort(connect(t, c.api, f, PoolOptions{}), "high").Complete(context.Background(), r)
		require.Error(t, err)
		require.Equal(t, c.own, r.Effort, "the caller's request stays as it is")
		asked := f.bodies[0]
		for _, other := range []string{"model", "messages", "stream", "stream_options", "max_tokens", "system"} {
			delete(asked, other)
		}
		got, err := json.Marshal(asked)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(got))
	}
	f := &fake{handle: func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusBadRequest) }}
	_, err := WithEffort(connect(t, OpenAI, f, PoolOptions{}), "").Complete(context.Background(), ask("x"))
	require.Error(t, err)
	require.NotContains(t, f.bodies[0], "reasoning_effort")
}

// TestFaults checks, for both APIs, how often a failing request is sent and what kind of error
// results.
func TestFaults(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, _ int) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	cut := func(w http.ResponseWriter, _ int) {
		send(w, chunk(`{"content":"half an ans"}`, ""))
		panic(http.ErrAbortHandler)
	}
	cases := []struct {
		name     string
		api      API
		handle   func(http.ResponseWriter, int)
		kind     Kind
		text     string
		requests int
	}{
		{
			"401", OpenAI,
			status(401, `{"error":{"message":"bad key `+testKey+`","type":"x","code":"invalid_api_key"}}`), Refused,
			"401 Unauthorized: bad key [redacted]", 1,
		},
		{"403", Anthropic, status(403, `{"type":"error","error":{"type":"permission_error","message":"no"}}`), Refused, "403 Forbidden: no", 1},
		{"no credit", OpenAI, status(429, `{"error":{"message":"pay","code":"insufficient_quota"}}`), Refused, "pay", 1},
		{
			"404", OpenAI,
			status(404, `{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found","param":null}}`),
			Invalid, "no such model", 1,
		},
		{"400 text", OpenAI, status(400, `what?`), Invalid, "400 Bad Request", 1},
		{"400 detail", OpenAI, status(400, `{"detail":"no chat template"}`), Invalid, "no chat template", 1},
		{"redirect", OpenAI, func(w http.ResponseWriter, _ int) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, Invalid, "the address redirects", 1},
		{
			"500", Anthropic, status(500, `{"type":"error","error":{"type":"api_error","message":"oops"}}`),
			Unreachable, "500 Internal Server Error: oops", maxFaults,
		},
		{"cut", OpenAI, cut, Unreachable, "the connection broke", maxFaults},
		{
			"ends early", OpenAI, func(w http.ResponseWriter, _ int) { send(w, chunk(`{"content":"half"}`, "")) },
			Unreachable, "the answer broke off", maxFaults,
		},
		{
			"ends early", Anthropic, func(w http.ResponseWriter, _ int) { send(w, claude(claudeStart)...) },
			Unreachable, "the answer broke off", maxFaults,
		},
		{"no stream", OpenAI, status(200, `{"choices":[]}`), Unreachable, "the answer broke off", maxFaults},
		{"malformed", OpenAI, func(w http.ResponseWriter, _ int) { send(w, `data: {"choices": oops`) }, Unreachable, "malformed", maxFaults},
		{
			"malformed", Anthropic,
			func(w http.ResponseWriter, _ int) { send(w, "event: message_start\ndata: {oops") }, Unreachable,
			"malformed", maxFaults,
		},
		{"block without start", Anthropic, func(w http.ResponseWriter, _ int) {
			send(w, claude(claudeStart, `{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}`)...)
		}, Unreachable, "did not start", maxFaults},
		{
			"error in stream", OpenAI,
			func(w http.ResponseWriter, _ int) { send(w, `data: {"error":{"message":"out of memory","code":500}}`) },
			Unreachable, "out of memory", maxFaults,
		},
		{"flood", OpenAI, func(w http.ResponseWriter, _ int) {
			big := chunk(`{"content":"`+strings.Repeat("x", 1<<20)+`"}`, "")
			send(w, big, big, big, big, big, big)
		}, Invalid, "the answer is too long", 1},
		{"endless line", Anthropic, func(w http.ResponseWriter, _ int) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: "))
			for range 40 {
				_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
			}
		}, Invalid, "the answer is too long", 1},
	}
	for _, tc := range cases {
		t.Run(tc.name+" "+string(tc.api), func(t *testing.T) {
			t.Parallel()
			f := &fake{handle: tc.handle}
			reply, err := connect(t, tc.api, f, PoolOptions{}).Complete(context.Background(), ask("hi"))
			require.Error(t, err)
			require.NotNil(t, reply)
			require.NotContains(t, err.Error(), testKey)
			var e *Error
			require.True(t, errors.As(err, &e), "%T", err)
			if tc.kind != "" {
				require.Equal(t, tc.kind, e.Kind, "%v", err)
				require.Contains(t, err.Error(), tc.text)
			}
			if tc.requests > 0 {
				require.Equal(t, tc.requests, f.requests())
			}
		})
	}
}

// A truncated answer is requested again, and its usage counts.
func TestRetryAfterCut(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, n int) {
		if n == 1 {
			send(w, chunk(`{"content":"half an ans"}`, ""))
			panic(http.ErrAbortHandler)
		}
		hello(w)
	}}
	reply, err := connect(t, OpenAI, f, PoolOptions{}).Complete(context.Background(), ask("hi"))
	require.NoError(t, err)
	require.Equal(t, "hello", reply.Message.Text)
	require.Equal(t, 2, reply.Tries)
	require.Greater(t, reply.Usage.InputTokens, int64(100))
	require.True(t, reply.Estimated)
}

func TestSlowFirstToken(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := &fake{handle: func(w http.ResponseWriter, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-release
	}}
	c := connect(t, OpenAI, f, PoolOptions{})
	t.Cleanup(func() { close(release) }) // before the server closes
	r := ask("hi")
	r.FirstEvent = 20 * time.Millisecond
	_, err := c.Complete(context.Background(), r)
	require.Equal(t, Silent, KindOf(err), "%v", err)
	require.Contains(t, err.Error(), "first_event_timeout_seconds")
	require.LessOrEqual(t, f.requests(), 1, "a timeout is a verdict and not retried")
}

// A cancelled call ends at once, and returns its cause and the partial answer.
func TestCancel(t *testing.T) {
	t.Parallel()
	gone := errors.New("enough")
	for _, api := range []API{OpenAI, Anthropic} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			ctx, cancel := context.WithCancelCause(context.Background())
			f := &fake{handle: func(w http.ResponseWriter, _ int) {
				if api == OpenAI {
					send(w, chunk(`{"content":"so far"}`, ""))
				} else {
					send(w, claude(claudeStart, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"so far"}}`)...)
				}
				cancel(gone)
				<-release
			}}
			c := connect(t, api, f, PoolOptions{})
			t.Cleanup(func() { close(release) })
			_, err := c.Complete(ctx, ask("hi"))
			require.ErrorIs(t, err, gone)
			require.Equal(t, 1, f.requests())
		})
	}
}
