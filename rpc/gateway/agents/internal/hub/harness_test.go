package hub

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/runner/executor"
	"waza/runner/executor/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sent is a request to a client.
type sent struct {
	id   string
	eval *remote.Evaluation
}

// client is a test client that records its requests.
type client struct {
	*Client
	id  string
	got chan sent

	mu    sync.Mutex
	fault error
	ends  []string
}

func (c *client) Send(id string, e *remote.Evaluation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil {
		return c.fault
	}
	c.got <- sent{id, e}
	return nil
}

func (c *client) Drop() { c.end("dropped") }

func (c *client) Kick(why string) { c.end("kicked: " + why) }

func (c *client) end(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, how)
}

func (c *client) ended() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends
}

// register connects a client that is not ready.
func register(h *Hub, id string, most int, tools ...string) (*client, int) {
	c := &client{id: id, got: make(chan sent, 1000)}
	var n int
	c.Client, n = h.Register(c, remote.Agent{ClientID: id, Tools: tools, MaxConcurrency: most, Version: "1.0.0", Address: "127.0.0.1:1"})
	return c, n
}

func join(h *Hub, id string, most int, tools ...string) *client {
	c, _ := register(h, id, most, tools...)
	c.Ready()
	return c
}

// answers answers a request with a result.
func (c *client) answers(s sent, result string) Outcome {
	return c.Answer(s.id, &remote.Answer{Result: json.RawMessage(result)})
}

func (c *client) fails(s sent, code int64, data string) Outcome {
	return c.Answer(s.id, &remote.Answer{Error: &remote.Fault{Code: code, Message: "no", Data: json.RawMessage(data)}})
}

func newHub(t *testing.T, o Options) *Hub {
	t.Helper()
	h, err := New(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

func eval(id string) *remote.Evaluation {
	return &remote.Evaluation{
		ID: id, Name: id, Tool: "chat", Input: json.RawMessage(`{}`), Timeout: 60000,
		Metadata: remote.Metadata{Tags: []string{}, Priority: "normal"},
	}
}

func want(id string) *remote.Want { return &remote.Want{ID: id, Tool: "chat"} }

func reserve(t *testing.T, h *Hub, w *remote.Want) remote.Slot {
	t.Helper()
	s, err := h.Reserve(t.Context(), w)
	require.NoError(t, err)
	return s
}

// reserving calls Reserve in its own goroutine.
func reserving(ctx context.Context, h *Hub, w *remote.Want) func() (remote.Slot, error) {
	done := make(chan struct{})
	var s remote.Slot
	var err error
	go func() { s, err = h.Reserve(ctx, w); close(done) }()
	return func() (remote.Slot, error) { <-done; return s, err }
}

// evaluating calls Evaluate in its own goroutine, and then releases the slot.
func evaluating(ctx context.Context, s remote.Slot, id string) func() (*remote.Answer, error) {
	done := make(chan struct{})
	var a *remote.Answer
	var err error
	go func() { a, err = s.Evaluate(ctx, eval(id), nil); s.Release(); close(done) }()
	return func() (*remote.Answer, error) { <-done; return a, err }
}

func agents(t *testing.T, h *Hub) []*remote.Agent {
	t.Helper()
	all, err := h.Agents(t.Context())
	require.NoError(t, err)
	return all
}

func requireAgain(t *testing.T, err error, why string) {
	t.Helper()
	require.NotNil(t, executor.AsRetry(err), "%v", err)
	require.ErrorContains(t, err, why)
}
