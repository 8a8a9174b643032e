package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/provider"
)

// live starts the server and a conversation with it, whose tools work: a list
// of words that one adds to and one reads.
func live(t *testing.T, s *server) (c *Conversation, log *[]string) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	pool := provider.NewPool(provider.PoolOptions{Getenv: func(string) string { return "" }})
	t.Cleanup(pool.Close)
	client, err := pool.Client(context.Background(), provider.OpenAI, provider.Endpoint{BaseURL: srv.URL + "/v1"}, "m")
	require.NoError(t, err)
	var words []string
	log = new([]string)
	return &Conversation{
		Client: client, Instructions: "Keep a list.",
		Tools: []LiveTool{{
			Tool: provider.Tool{
				Name:       "add",
				Parameters: map[string]any{"type": "object", "properties": map[string]any{"word": map[string]any{"type": "string"}}},
			},
			Call: func(_ context.Context, arguments json.RawMessage) (ToolResult, error) {
				var a struct{ Word string }
				if err := json.Unmarshal(arguments, &a); err != nil || a.Word == "" {
					return ToolResult{Text: "a word is missing", IsError: true}, nil
				}
				words = append(words, a.Word)
				return ToolResult{Text: fmt.Sprintf("%d words", len(words))}, nil
			},
		}, {
			Tool: provider.Tool{Name: "list"},
			Call: func(context.Context, json.RawMessage) (ToolResult, error) {
				return ToolResult{Text: strings.Join(words, " ")}, nil
			},
		}},
		Text: func(part string) { *log = append(*log, "part "+part) },
		Replied: func(r *provider.Reply, err error) {
			*log = append(*log, fmt.Sprint("reply ", r.Message.Text, " ", err))
		},
		Called: func(call provider.Call, result ToolResult) {
			*log = append(*log, fmt.Sprint("call ", call.Name, " ", result))
		},
	}, log
}

// A model uses tools that remember what it did, in the order in which it calls
// them, and in the next prompt, too.
func TestLiveTools(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(_ http.ResponseWriter, n int) []string {
		switch n {
		case 1:
			return []string{says("I "), says("add."), calls("add", `{"word":"one"}`), calls("list", `{}`)}
		case 2:
			return []string{calls("add", `{}`), calls("drop", `{}`), calls("list", `[]`)}
		case 3:
			return []string{says("Done.")}
		case 4:
			return []string{calls("add", `{"word":"two"}`), calls("list", `{}`)}
		}
		return []string{says("one two")}
	}}
	c, log := live(t, s)
	answer, err := c.Ask(context.Background(), "add one")
	require.NoError(t, err)
	require.Equal(t, "Done.", answer)
	require.Equal(t, []string{
		"part I ", "part add.", "reply I add. <nil>", "call add {1 words false}", "call list {one false}",
		"reply  <nil>", "call add {a word is missing true}", `call drop {error: there is no tool "drop" true}`,
		"call list {error: the arguments are not a JSON object true}",
		"part Done.", "reply Done. <nil>",
	}, *log)
	answer, err = c.Ask(context.Background(), "add two")
	require.NoError(t, err)
	require.Equal(t, "one two", answer)

	var last struct {
		Messages []struct{ Role, Content string }
	}
	require.NoError(t, json.Unmarshal([]byte(s.bodies[4]), &last))
	var said []string
	for _, m := range last.Messages {
		said = append(said, m.Role+" "+m.Content)
	}
	require.Equal(t, []string{
		"system Keep a list.", "user add one", "assistant I add.", "tool 1 words", "tool one",
		"assistant ", "tool a word is missing", `tool error: there is no tool "drop"`, "tool error: the arguments are not a JSON object",
		"assistant Done.", "user add two", "assistant ", "tool 2 words", "tool one two",
	}, said)
}

// A tool whose error ends the answer leaves the conversation as it was, so that
// the prompt can be asked again.
func TestLiveToolFails(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(_ http.ResponseWriter, n int) []string {
		if n == 1 {
			return []string{calls("list", `{}`)}
		}
		return []string{says("hello")}
	}}
	c, log := live(t, s)
	gone := errors.New("the page was closed")
	ctx, cancel := context.WithCancelCause(context.Background())
	c.Tools[1].Call = func(ctx context.Context, _ json.RawMessage) (ToolResult, error) {
		cancel(gone)
		<-ctx.Done()
		return ToolResult{}, context.Cause(ctx)
	}
	_, err := c.Ask(ctx, "list")
	require.ErrorIs(t, err, gone)
	require.Equal(t, []string{"reply  <nil>"}, *log)
	answer, err := c.Ask(context.Background(), "again")
	require.NoError(t, err)
	require.Equal(t, "hello", answer)
	require.NotContains(t, s.bodies[1], "tool_calls")
	require.NotContains(t, s.bodies[1], `"content":"list"`)
}

// A conversation that reaches its limit keeps its messages and can continue.
func TestLiveTurnsAreBounded(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(_ http.ResponseWriter, n int) []string {
		if n <= 2 {
			return []string{says("more"), calls("list", `{}`)}
		}
		return []string{says("enough")}
	}}
	c, _ := live(t, s)
	c.MaxTurns = 2
	answer, err := c.Ask(context.Background(), "list")
	require.ErrorIs(t, err, ErrMaxTurns)
	require.Equal(t, "more", answer)
	answer, err = c.Ask(context.Background(), "stop")
	require.NoError(t, err)
	require.Equal(t, "enough", answer)
	require.Equal(t, 2, strings.Count(s.bodies[2], `"role":"tool"`))
}
