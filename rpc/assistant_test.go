package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/browser"
)

// browsers is a server with two assistants and two extensions.
type browsers struct{}

func (browsers) Assistants(context.Context) ([]*browser.Assistant, error) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []*browser.Assistant{
		{ID: "550e8400-e29b-41d4-a716-446655440001", Name: "Reader", Status: "inactive", Capabilities: []string{"extract_text"}, CreatedAt: at},
		{ID: "550e8400-e29b-41d4-a716-446655440002", Name: "Shopper", Status: "active", Model: "m", Capabilities: []string{"navigate"}, CreatedAt: at, LastActiveAt: &at,
			Executing: &browser.CommandInfo{
				ID: "550e8400-e29b-41d4-a716-446655440003", Text: "buy milk", Since: at,
				Extension: "abcdefghijklmnopabcdefghijklmnop",
			},
			Queued: []browser.CommandInfo{
				{ID: "550e8400-e29b-41d4-a716-446655440004", Text: "and bread", Since: at, Extension: "abcdefghijklmnopabcdefghijklmnop"},
			}},
	}, nil
}

func (browsers) Extensions(context.Context) ([]*browser.Extension, error) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []*browser.Extension{
		{
			ID: "550e8400-e29b-41d4-a716-446655440000", Address: "127.0.0.1:4711", Version: "1.0.0",
			Evaluation: true, Since: at, Trial: "RUN/a/1/1/30709882cb75", Command: "read it", Tool: "extract_text",
			Messages: 7,
		},
		{ID: "abcdefghijklmnopabcdefghijklmnop", Address: "127.0.0.1:4712", Since: at, Command: "buy milk", Messages: 3},
	}, nil
}

// Without a server, in a program that cannot reach one, and for users who are not admins, the
// lists are empty.
func TestNoBrowsers(t *testing.T) {
	t.Parallel()
	restricted := rpc.Client{Authorised: true, View: runner.View{User: "ann", Sees: func(string) bool { return false }}}
	for name, c := range map[string]struct {
		options rpc.Options
		who     rpc.Client
	}{
		"no program": {who: rpc.Client{Authorised: true}},
		"no server":  {options: rpc.Options{Browsers: noServer{}}, who: rpc.Client{Authorised: true}},
		"no admin":   {options: rpc.Options{Browsers: browsers{}}, who: restricted},
	} {
		client, _ := pipeOf(t.Context(), t, newServer(t, c.options), c.who)
		client.send(`{"jsonrpc":"2.0","id":1,"method":"assistant.list"}` + "\n")
		line, ok := client.line()
		require.True(t, ok)
		require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"server":false,"assistants":[],"extensions":[]}}`, line, name)
	}
}

// noServer is a server that is not running.
type noServer struct{ browsers }

func (noServer) Assistants(context.Context) ([]*browser.Assistant, error) {
	return nil, executor.ErrNoServer
}
