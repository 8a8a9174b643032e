package runnertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
)

// Cached runs suites one after the other in one state directory, with an agent that remembers
// the requested trials.
type Cached struct {
	*testing.T
	R     *runner.Runner
	State string
	does  Agent // the behavior of the agent; nil means Says

	Mu    sync.Mutex // guards asked
	Asked []string
}

// NewCached returns a Cached whose agent behaves like does.
func NewCached(t *testing.T, does Agent) *Cached {
	c := &Cached{T: t, State: t.TempDir(), does: does}
	c.R = AgentRunner(t, c.State, func(ctx context.Context, trial *executor.Trial) (string, error) {
		c.Mu.Lock()
		c.Asked = append(c.Asked, fmt.Sprintf("%s-%d", trial.Task.ID, trial.Num))
		c.Mu.Unlock()
		if c.does != nil {
			return c.does(ctx, trial)
		}
		return Says(ctx, trial)
	})
	return c
}

// Run runs a suite with the cache and returns the executed trials, sorted.
func (c *Cached) Run(files string, req record.Request) (Result, string) {
	c.Helper()
	res, executed, _ := c.Follow(files, req)
	return res, executed
}

// Follow runs a suite with the cache. It returns its result, the executed trials, and its
// events.
func (c *Cached) Follow(files string, req record.Request) (Result, string, []*record.Event) {
	c.Helper()
	req.Cache = true
	c.Asked = nil
	live := Start(c.T, c.R, files, req)
	events := Follow(c.T, live, 1)
	<-live.Done()
	slices.Sort(c.Asked)
	return ResultOf(c.T, live), strings.Join(c.Asked, " "), events
}
