package rpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner/executor"
	"waza/runner/executor/remote"
)

// directory is a server with two agents. It stops once a client has watched its agents.
type directory struct{ gone atomic.Bool }

func (d *directory) Agents(context.Context) ([]*remote.Agent, error) {
	if d.gone.Load() {
		return nil, executor.ErrNoServer
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []*remote.Agent{
		{
			ClientID: "550e8400-e29b-41d4-a716-446655440000", State: remote.Ready, Tools: []string{"chat"},
			MaxConcurrency: 3, Running: 1, Answered: 7, Version: "1.0.0", Address: "127.0.0.1:4711", Since: since,
		},
		{ClientID: "550e8400-e29b-41d4-a716-446655440000:12", State: remote.Paused, Tools: []string{}, MaxConcurrency: 1, Since: since},
	}, nil
}

func (d *directory) Watch(ctx context.Context, changed func(*remote.Agent)) error {
	agents, err := d.Agents(ctx)
	for _, a := range agents {
		changed(a)
	}
	d.gone.Store(true)
	if err == nil {
		err = executor.ErrNoServer
	}
	return err
}

func (d *directory) Kick(context.Context, string, string) error { return nil }

// Without a server, or in a program that cannot reach one, there are no agents.
func TestNoAgents(t *testing.T) {
	t.Parallel()
	gone := &directory{}
	gone.gone.Store(true)
	for _, agents := range []remote.Directory{nil, gone} {
		c := transports["tcp"](t, newServer(t, rpc.Options{Agents: agents}))
		c.send(`{"jsonrpc":"2.0","id":1,"method":"agent.list"}` + "\n")
		line, ok := c.line()
		require.True(t, ok)
		require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"server":false,"agents":[]}}`, line)
	}
}
