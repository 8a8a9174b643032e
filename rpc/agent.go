package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"waza/rpc/dispatch"
	"waza/runner/executor/remote"
	"waza/runner/pause"
)

func agentMethods() []*method {
	return []*method{
		dispatch.Define("agent.list", dispatch.Heavy,
			"List the agents that are connected to the server of this user, `waza serve`, and do trials of suites with `executor: remote`.", listAgents),
	}
}

type agentListParams struct {
	Watch *bool `json:"watch" doc:"true sends agent.changed from now on: first for each agent, then for each change. false ends that; without it everything stays as it is."`
}

type agentList struct {
	Server bool            `json:"server" doc:"Whether there is a server."`
	Agents []*remote.Agent `json:"agents" doc:"The agents, by id; none without a server."`
}

type agentChangedParams struct {
	Server bool          `json:"server" doc:"Whether there is a server. When it is gone, so are all agents; waza follows the next one when it is there."`
	Agent  *remote.Agent `json:"agent,omitempty" doc:"The agent as it is now; absent when there is no server."`
}

func listAgents(ctx context.Context, c *call, p *agentListParams) (*agentList, error) {
	list := &agentList{Agents: []*remote.Agent{}}
	if p.Watch != nil {
		c.conn.agents.set(c.conn, *p.Watch, c.Replied())
	}
	if c.server.o.Agents == nil {
		return list, nil
	}
	agents, err := c.server.o.Agents.Agents(ctx)
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

// agentPause is how long after a server has gone waza looks for the next one.
const agentPause = time.Second

// agentWatch sends a connection what changes of the agents, if it wants that.
type agentWatch struct {
	mu     sync.Mutex // guards the fields below
	closed bool
	cancel context.CancelFunc // nil when nothing is sent
	done   chan struct{}      // closed when nothing is sent any more
}

// set begins or ends to send, from the time when ready is closed. It changes nothing
// when that is how it is.
func (w *agentWatch) set(c *connection, on bool, ready <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if on == (w.cancel != nil) || on && (w.closed || c.server.o.Agents == nil) {
		return
	}
	if !on {
		w.endLocked()
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	w.cancel, w.done = cancel, done
	c.sending.Go(func() {
		defer close(done)
		defer cancel()
		if ready != nil {
			select {
			case <-ready:
			case <-ctx.Done():
				return
			}
		}
		c.sendAgents(ctx)
	})
}

func (w *agentWatch) endLocked() {
	if w.cancel != nil {
		w.cancel()
		<-w.done
		w.cancel = nil
	}
}

// close ends to send, for good.
func (w *agentWatch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.endLocked()
}

// sendAgents sends what changes of the agents until ctx ends, or the client is gone.
func (c *connection) sendAgents(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	send := func(p *agentChangedParams) {
		if c.stream.Notify(ctx, "agent.changed", p) != nil {
			cancel()
		}
	}
	for known := true; ctx.Err() == nil; {
		err := c.server.o.Agents.Watch(ctx, func(a *remote.Agent) {
			known = true
			send(&agentChangedParams{Server: true, Agent: a})
		})
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, remote.ErrNoServer) {
			c.server.log.Warn("agents cannot be watched", "error", err)
		}
		if known {
			known = false
			send(&agentChangedParams{})
		}
		_ = pause.For(ctx, agentPause) // the loop looks at ctx
	}
}
