package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor/remote"
)

// instant is a client that answers at once, in the goroutine that asks.
type instant struct{ client *Client }

func (c *instant) Send(id string, _ *remote.Evaluation) error {
	c.client.Answer(id, &remote.Answer{Result: json.RawMessage(`1`)})
	return nil
}
func (*instant) Drop()       {}
func (*instant) Kick(string) {}

// BenchmarkThousandAgents measures one evaluation while 10,000 others wait.
func BenchmarkThousandAgents(b *testing.B) {
	h, err := New(b.Context(), Options{})
	require.NoError(b, err)
	defer h.Close()
	for i := range 1000 {
		c := &instant{}
		c.client, _ = h.Register(c,
			remote.Agent{ClientID: fmt.Sprint("agent-", i), Tools: []string{"chat", fmt.Sprint("tool-", i%10)}, MaxConcurrency: 1})
		c.client.Ready()
	}
	// No agent has room, so all callers wait.
	var slots []remote.Slot
	for i := range 1000 {
		s, err := h.Reserve(b.Context(), want(fmt.Sprint("first-", i)))
		require.NoError(b, err)
		slots = append(slots, s)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 10_000 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s, err := h.Reserve(ctx, &remote.Want{ID: "w", Tool: fmt.Sprint("tool-", n%10)})
				if err != nil {
					return
				}
				_, _ = s.Evaluate(ctx, eval("w"), nil)
				s.Release()
				select {
				case done <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for {
		h.mu.Lock()
		waiting := h.pool.Waiting()
		h.mu.Unlock()
		if waiting == 10_000 {
			break
		}
		runtime.Gosched()
	}
	b.ResetTimer()
	for _, s := range slots {
		s.Release()
	}
	for range b.N {
		<-done
	}
	b.StopTimer()
	cancel()
	all.Wait()
}
