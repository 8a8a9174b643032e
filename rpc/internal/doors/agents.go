package doors

import (
	"context"

	"waza/rpc/internal/dispatch"
	"waza/runner/executor"
	"waza/runner/executor/remote"
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
	if r.o.Agents == nil {
		return &agentList{Agents: []*remote.Agent{}}, nil
	}
	if p.Watch != nil {
		r.agents.set(r.Client, *p.Watch, r.Replied(), r.sendAgents)
	}
	agents, server, err := listed(ctx, executor.ErrNoServer, r.o.Agents.Agents)
	return &agentList{Server: server, Agents: agents}, err
}

// sendAgents sends changes of the agents until ctx ends or the client is gone.
func (c *Client) sendAgents(ctx context.Context) {
	c.sendChanges(ctx, "agent.changed", executor.ErrNoServer, func(ctx context.Context, send func(params any)) error {
		return c.o.Agents.Watch(ctx, func(a *remote.Agent) { send(&agentChangedParams{Server: true, Agent: a}) })
	}, &agentChangedParams{})
}
