package rpc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
	"waza/runner/fleet/survey"
)

// viewer is a fleet whose state a function returns.
type viewer func() (*survey.Survey, error)

func (v viewer) Survey(context.Context) (*survey.Survey, error) { return v() }

// The fleet of the user and its problems are reported, but only to the owner and admins.
func TestFleet(t *testing.T) {
	t.Parallel()
	admin := rpc.Client{Authorised: true}
	restricted := rpc.Client{Authorised: true, View: runner.View{User: "ann", Sees: func(string) bool { return false }}}
	stands := viewer(func() (*survey.Survey, error) {
		return &survey.Survey{Fleet: "embedded", Team: "waza", Used: true}, nil
	})
	for name, c := range map[string]struct {
		fleet survey.Viewer
		who   rpc.Client
		want  string
	}{
		"no program": {nil, admin, `{"known":false}`},
		"no fleet":   {viewer(func() (*survey.Survey, error) { return nil, nil }), admin, `{"known":false}`},
		"no admin":   {stands, restricted, `{"known":false}`},
		"no answer": {
			viewer(func() (*survey.Survey, error) { return nil, errors.New("no server") }), admin,
			`{"known":true,"problem":"no server"}`,
		},
		"a fleet": {stands, admin, `{"known":true,"fleet":{"fleet":"embedded","team":"waza","time":"0001-01-01T00:00:00Z","used":true,
			"orders":{"messages":0,"bytes":0},"results":{"messages":0,"bytes":0},"filesBytes":0,"classes":null,"runs":null,"workers":null}}`},
	} {
		client, _ := pipeOf(t.Context(), t, newServer(t, rpc.Options{Fleet: c.fleet}), c.who)
		client.send(`{"jsonrpc":"2.0","id":1,"method":"fleet.get"}` + "\n")
		line, ok := client.line()
		require.True(t, ok)
		require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":`+c.want+`}`, line, name)
	}
}
