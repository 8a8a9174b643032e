package doors

import (
	"context"
	"errors"
	"time"

	"waza/rpc/internal/dispatch"
	"waza/runner/executor/remote"
	"waza/runner/pause"
)

func agentMethods() []*dispatch.Method[*Request] {
	return []*dispatch.Method[*Request]{
		dispatch.Define("agent.list", dispatch.Heavy,
			"List the agents that are connected to `waza serve` of this user. They run trials of suites with `executor: remote`.", listAgents),
	}
}

type agentListParams struct {
	Watch *bool `json:"watch" doc:"true sends agent.changed from now on: first for each agent, then for each change. false stops that; when absent, nothing changes."`
}

type agentList struct {
	Server bool            `json:"server" doc:"Whether the server is running."`
	Agents []*remote.Agent `json:"agents" doc:"The agents, by id; empty without a server."`
}

type agentChangedParams struct {
	Server bool          `json:"server" doc:"Whether the server is running. When it stops, all agents are gone; waza follows the next server once it runs."`
	Agent  *remote.Agent `json:"agent,omitempty" doc:"The new state of the agent; absent without a server."`
}

func listAgents(ctx context.Context, r *Request, p *agentListParams) (*agentList, error) {
	list := &agentList{Agents: []*remote.Agent{}}
	if r.o.Agents == nil {
		return list, nil
	}
	if p.Watch != nil {
		r.agents.set(r.Client, *p.Watch, r.Replied(), r.sendAgents)
	}
	agents, err := r.o.Agents.Agents(ctx)
	switch {
	case errors.Is(err, remote.ErrNoServer):
		return list, nil
	case err != nil:
		return nil, err
	}
	list.Server = true
	list.Agents = append(list.Agents, agents...)
	return list, nil
}

// watchPause is how long waza waits, after a server has stopped, before it looks for the next
// one.
const watchPause = time.Second

// sendAgents sends changes of the agents until ctx ends or the client is gone.
func (c *Client) sendAgents(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	send := func(p *agentChangedParams) {
		if c.o.Notify(ctx, "agent.changed", p) != nil {
			cancel()
		}
	}
	for known := true; ctx.Err() == nil; {
		err := c.o.Agents.Watch(ctx, func(a *remote.Agent) {
			known = true
			send(&agentChangedParams{Server: true, Agent: a})
		})
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, remote.ErrNoServer) {
			c.o.Log.Warn("cannot watch agents", "error", err)
		}
		if known {
			known = false
			send(&agentChangedParams{})
		}
		_ = pause.For(ctx, watchPause) // the loop checks ctx
	}
}
