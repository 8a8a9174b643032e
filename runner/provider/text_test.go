package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// streamed contains stream events of each API: a complete answer, and the start of an answer whose
// text is "So far".
var streamed = map[API]struct{ events, start string }{
	OpenAI: {
		start: chunk(`{"role":"assistant","content":"So "}`, "") + "\n\n" + chunk(`{"content":"far"}`, "") + "\n\n",
		events: strings.Join([]string{
			": a comment", chunk(`{"reasoning":"a thought"}`, ""), chunk(`{"role":"assistant","content":""}`, ""),
			chunk(`{"content":"Grüße, "}`, ""),
			chunk(`{"content":"<世界> \ud83d\ude00\n"}`, ""), chunk(`{"content":"end"}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}}]}`, "tool_calls"),
			usageChunk, "data: [DONE]", "",
		}, "\n\n"),
	},
	Anthropic: {
		start: strings.Join(append(claude(claudeStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"So "}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"far"}}`), ""), "\n\n"),
		events: strings.Join(append(claude(claudeStart, `{"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a thought"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Grüße, "}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"<世界> \ud83d\ude00\n"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"end"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"weather","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":30}}`,
			`{"type":"message_stop"}`), ""), "\n\n"),
	},
}

func eachAPI(t *testing.T, test func(t *testing.T, api API)) {
	t.Helper()
	for _, api := range []API{OpenAI, Anthropic} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			test(t, api)
		})
	}
}

// collect appends the parts of an answer's text to a list.
func collect(r *Request) *[]string {
	var parts []string
	r.Text = func(part string) { parts = append(parts, part) }
	return &parts
}

// The parts arrive as the API sends them, wherever the network splits the stream and whatever
// the line ends are. They add up to the reply, which is the same without Text.
func TestTextArrivesInParts(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api API) {
		for name, size := range map[string]int{"whole": 1 << 20, "bytes": 1, "sevens": 7} {
			for ending, newline := range map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"} {
				t.Run(name+" "+ending, func(t *testing.T) {
					t.Parallel()
					c := connect(t, api, &fake{handle: func(w http.ResponseWriter, _ int) {
						w.Header().Set("Content-Type", "text/event-stream")
						rest := strings.ReplaceAll(streamed[api].events, "\n", newline)
						for rest != "" {
							n := min(size, len(rest))
							_, _ = w.Write([]byte(rest[:n]))
							w.(http.Flusher).Flush()
							rest = rest[n:]
						}
					}}, PoolOptions{})
					r := ask("hi")
					parts := collect(r)
					reply, err := c.Complete(context.Background(), r)
					require.NoError(t, err)
					require.Equal(t, []string{"Grüße, ", "<世界> 😀\n", "end"}, *parts)
					require.Equal(t, "Grüße, <世界> 😀\nend", reply.Message.Text)
					require.Equal(t, "a thought", reply.Thought)
					require.Equal(t, StopCalls, reply.Stop)
					require.Len(t, reply.Message.Calls, 1)
					require.Positive(t, reply.FirstToken)

					whole, err := c.Complete(context.Background(), ask("hi"))
					require.NoError(t, err)
					require.Equal(t, reply.Message, whole.Message)
				})
			}
		}
	})
}

// A truncated answer is not requested again after the caller received a part of it, because the
// parts of two answers would mix.
func TestTextIsNotRetried(t *testing.T) {
	t.Parallel()
	failures := map[string]struct {
		end  func(w http.ResponseWriter, api API)
		kind Kind
		text string
	}{
		"cut":  {func(http.ResponseWriter, API) { panic(http.ErrAbortHandler) }, Unreachable, "the connection broke"},
		"ends": {func(http.ResponseWriter, API) {}, Unreachable, "the answer broke off"},
		"error": {func(w http.ResponseWriter, api API) {
			if api == OpenAI {
				send(w, `data: {"error":{"message":"out of memory","code":500}}`)
				return
			}
			send(w, claude(`{"type":"error","error":{"type":"api_error","message":"out of memory"}}`)...)
		}, Unreachable, "out of memory"},
		"overloaded": {func(w http.ResponseWriter, api API) {
			if api == OpenAI {
				send(w, `data: {"error":{"message":"later","type":"rate_limit_exceeded"}}`)
				return
			}
			send(w, claude(`{"type":"error","error":{"type":"overloaded_error","message":"later"}}`)...)
		}, Throttled, "later"},
		"malformed": {func(w http.ResponseWriter, _ API) { send(w, "event: x\ndata: {oops") }, Unreachable, "malformed"},
	}
	eachAPI(t, func(t *testing.T, api API) {
		for name, tc := range failures {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := &fake{handle: func(w http.ResponseWriter, _ int) {
					_, _ = w.Write([]byte(streamed[api].start))
					w.(http.Flusher).Flush()
					tc.end(w, api)
				}}
				r := ask("hi")
				parts := collect(r)
				reply, err := connect(t, api, f, PoolOptions{}).Complete(context.Background(), r)
				require.Equal(t, tc.kind, KindOf(err), "%v", err)
				require.ErrorContains(t, err, tc.text)
				require.Equal(t, 1, f.requests())
				require.Equal(t, 1, reply.Tries)
				require.Equal(t, strings.Join(*parts, ""), reply.Message.Text)
				require.Equal(t, "So far", reply.Message.Text)
			})
		}
	})
}

// Before the first part arrives, a call is retried like any other.
func TestTextIsRetriedBefore(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api API) {
		f := &fake{handle: func(w http.ResponseWriter, n int) {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = w.Write([]byte(streamed[api].events))
		}}
		r := ask("hi")
		parts := collect(r)
		reply, err := connect(t, api, f, PoolOptions{}).Complete(context.Background(), r)
		require.NoError(t, err)
		require.Equal(t, 2, reply.Tries)
		require.Equal(t, "Grüße, <世界> 😀\nend", strings.Join(*parts, ""))
	})
}

// A call that is cancelled during its answer returns the cause and the partial answer, even
// while the provider keeps the connection open.
func TestTextIsCancelled(t *testing.T) {
	t.Parallel()
	gone := errors.New("enough")
	eachAPI(t, func(t *testing.T, api API) {
		release := make(chan struct{})
		ctx, cancel := context.WithCancelCause(context.Background())
		f := &fake{handle: func(w http.ResponseWriter, _ int) {
			_, _ = w.Write([]byte(streamed[api].start))
			w.(http.Flusher).Flush()
			<-release
		}}
		c := connect(t, api, f, PoolOptions{})
		t.Cleanup(func() { close(release) })
		r := ask("hi")
		text := ""
		r.Text = func(part string) {
			if text += part; text == "So far" {
				cancel(gone)
			}
		}
		reply, err := c.Complete(ctx, r)
		require.ErrorIs(t, err, gone)
		require.Equal(t, "So far", reply.Message.Text)
		require.Equal(t, text, reply.Message.Text)
		require.Equal(t, 1, f.requests())
	})
}

// Compatible servers differ: fields have other types, and numbers are fractions or negative. The
// answer counts nonetheless.
func TestLenience(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) {
		send(w, `data: {"model":7,"error":null,"choices":[{"index":null,"delta":{"content":"hi","tool_calls":null,"reasoning":{"x":1}},"finish_reason":""}],"usage":null}`,
			"id: 1", `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":12.0,"completion_tokens":"x","total_tokens":-1,"cost":0.5}}`)
	}}
	reply, err := connect(t, OpenAI, f, PoolOptions{}).Complete(context.Background(), ask("hi"))
	require.NoError(t, err)
	require.Equal(t, "hi", reply.Message.Text)
	require.Equal(t, StopEnd, reply.Stop)
	require.Equal(t, record.Usage{InputTokens: 12, CostUSD: 0.5}, reply.Usage)
}

// Escapes in the address of a deployment and in texts are kept.
func TestAddressIsKept(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) { hello(w) }}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	pool := NewPool(PoolOptions{Getenv: withKey})
	t.Cleanup(pool.Close)
	c, err := pool.Client(context.Background(), OpenAI,
		Endpoint{BaseURL: server.URL + "/openai/deployments/my%20gpt/", APIVersion: "2024-10-21"}, "gpt-4o")
	require.NoError(t, err)
	_, err = c.Complete(context.Background(), ask("a < b & c"))
	require.NoError(t, err)
	require.Equal(t, "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21", f.urls[0])
	require.Empty(t, f.heads[0].Get("Authorization"))
	require.Equal(t, []any{map[string]any{"role": "user", "content": "a < b & c"}}, f.bodies[0]["messages"])
}

// A parameter that cannot be encoded is an error of the suite, not of the provider.
func TestParamsThatAreNoJSON(t *testing.T) {
	t.Parallel()
	f := &fake{handle: func(w http.ResponseWriter, _ int) { hello(w) }}
	r := ask("hi")
	r.Params = map[string]any{"odd": map[any]any{1: 2}}
	_, err := connect(t, OpenAI, f, PoolOptions{}).Complete(context.Background(), r)
	require.Equal(t, Invalid, KindOf(err), "%v", err)
	require.Zero(t, f.requests())
}

// The announced end of a stream ends the call, even if the server leaves the connection open.
func TestAnnouncedEnd(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := connect(t, OpenAI, &fake{handle: func(w http.ResponseWriter, _ int) { hello(w); <-release }}, PoolOptions{})
	t.Cleanup(func() { close(release) })
	reply, err := c.Complete(context.Background(), ask("hi"))
	require.NoError(t, err)
	require.Equal(t, "hello", reply.Message.Text)
}
