package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/executor/remote"
)

// shelf is a store that survives hubs.
type shelf struct {
	mu       sync.Mutex
	answers  map[string]*remote.Answer
	assigned map[string]string
	fault    error
}

func newShelf() *shelf {
	return &shelf{answers: map[string]*remote.Answer{}, assigned: map[string]string{}}
}

func (m *shelf) Secret(_ context.Context, name string) ([]byte, error) {
	return bytes.Repeat([]byte(name[:1]), 32), m.fault
}

func (m *shelf) SaveAnswer(_ context.Context, id, clientID string, answer []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &remote.Answer{}
	if err := json.Unmarshal(answer, a); err != nil {
		return err
	}
	a.ClientID = clientID
	m.answers[id] = a
	return m.fault
}

func (m *shelf) TakeAnswer(_ context.Context, id string) (clientID string, answer []byte, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.answers[id]
	if a == nil || m.fault != nil {
		return "", nil, false, m.fault
	}
	delete(m.answers, id)
	data, err := json.Marshal(a)
	return a.ClientID, data, true, err
}

func (m *shelf) Answers(context.Context) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := map[string]string{}
	for id, a := range m.answers {
		ids[id] = a.ClientID
	}
	return ids, nil
}

func (m *shelf) Assign(id, clientID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.assigned[id] = clientID
}

func (m *shelf) Unassign(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.assigned, id)
}

func (m *shelf) Assignments(context.Context) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.assigned), nil
}

// asked prepares a store like that of a server that was killed while client a had x, and returns
// the request.
func asked(t *testing.T, m *shelf) sent {
	h := newHub(t, Options{Store: m})
	c := join(h, "a", 1)
	ctx, kill := context.WithCancelCause(t.Context())
	result := evaluating(ctx, reserve(t, h, want("x")), "x")
	got := <-c.got
	kill(remote.ErrCallerGone)
	_, err := result()
	require.ErrorIs(t, err, remote.ErrCallerGone)
	h.Close()
	return got
}

func TestAnswerAfterARestart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, h *Hub, m *shelf, got sent){
		"before a caller asks": func(t *testing.T, h *Hub, m *shelf, got sent) {
			c := join(h, "a", 1)
			require.Equal(t, Kept, c.answers(got, `"kept"`))
			require.Equal(t, Kept, c.answers(got, `"kept"`))
			other := join(h, "b", 1)
			s := reserve(t, h, want("x"))
			s.Release() // a caller that does not use it leaves it to the next one
			s = reserve(t, h, want("x"))
			require.Equal(t, "a", s.ClientID())
			a, err := evaluating(t.Context(), s, "x")()
			require.NoError(t, err)
			require.Equal(t, &remote.Answer{ClientID: "a", Result: json.RawMessage(`"kept"`)}, a)
			require.Equal(t, Twice, c.answers(got, `"late"`))
			require.Empty(t, other.got)
			require.Empty(t, m.answers)
		},
		"after another restart": func(t *testing.T, h *Hub, m *shelf, got sent) {
			require.Equal(t, Kept, join(h, "a", 1).answers(got, `null`))
			h = newHub(t, Options{Store: m})
			a, err := evaluating(t.Context(), reserve(t, h, want("x")), "x")()
			require.NoError(t, err)
			require.Equal(t, &remote.Answer{ClientID: "a", Result: json.RawMessage(`null`)}, a)
		},
		"while the run waits for the agent": func(t *testing.T, h *Hub, m *shelf, got sent) {
			waiting := reserving(t.Context(), h, want("x"))
			synctest.Wait()
			c, n := register(h, "a", 1)
			require.Equal(t, 1, n)
			require.Equal(t, Counted, c.answers(got, `1`))
			s, err := waiting()
			require.NoError(t, err)
			a, err := evaluating(t.Context(), s, "x")()
			require.NoError(t, err)
			require.Equal(t, "1", string(a.Result))
			require.Empty(t, m.answers)
		},
		"while another agent works on it": func(t *testing.T, h *Hub, m *shelf, got sent) {
			time.Sleep(11 * time.Second)
			b := join(h, "b", 1)
			result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
			<-b.got
			require.Equal(t, Counted, join(h, "a", 1).answers(got, `1`))
			a, err := result()
			require.NoError(t, err)
			require.Equal(t, "a", a.ClientID)
		},
		"between Reserve and Evaluate": func(t *testing.T, h *Hub, m *shelf, got sent) {
			c := join(h, "a", 1)
			s := reserve(t, h, want("x"))
			require.Equal(t, Kept, c.answers(got, `1`))
			a, err := evaluating(t.Context(), s, "x")()
			require.NoError(t, err)
			require.Equal(t, "1", string(a.Result))
			require.Empty(t, c.got)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newShelf()
				got := asked(t, m)
				test(t, newHub(t, Options{Store: m}), m, got)
			})
		})
	}
}

// After a restart, an evaluation waits for the agent that had it, and for no other agent.
func TestAgentComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShelf()
		got := asked(t, m)
		h := newHub(t, Options{Store: m})
		b := join(h, "b", 1)
		waiting := reserving(t.Context(), h, want("x"))
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := reserving(ctx, h, want("x"))
		synctest.Wait()
		require.Equal(t, 2, h.pool.Waiting())
		cancel()
		_, err := cancelled()
		require.ErrorIs(t, err, context.Canceled)
		a := join(h, "a", 1)
		s, err := waiting()
		require.NoError(t, err)
		result := evaluating(t.Context(), s, "x")
		require.Equal(t, got, <-a.got)
		require.Empty(t, b.got)
		require.Equal(t, Counted, a.answers(got, `1`))
		_, err = result()
		require.NoError(t, err)
		require.Empty(t, m.assigned)
	})
}

func TestAgentDoesNotComeBackAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShelf()
		asked(t, m)
		h := newHub(t, Options{Store: m})
		start := time.Now()
		join(h, "b", 1)
		require.Equal(t, "b", reserve(t, h, want("x")).ClientID())
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Empty(t, m.assigned)
	})
}

// A run that another process took over finds the working agent, and does not ask again.
func TestCallerIsReplaced(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"before the answer": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHub(t, Options{Store: newShelf()})
				c := join(h, "a", 1)
				ctx, kill := context.WithCancelCause(t.Context())
				result := evaluating(ctx, reserve(t, h, want("x")), "x")
				got := <-c.got
				kill(remote.ErrCallerGone)
				_, err := result()
				require.ErrorIs(t, err, remote.ErrCallerGone)
				if early {
					require.Equal(t, Kept, c.answers(got, `1`))
				}
				s := reserve(t, h, want("x"))
				result = evaluating(t.Context(), s, "x")
				if !early {
					synctest.Wait()
					require.Empty(t, c.got)
					require.Equal(t, Counted, c.answers(got, `1`))
				}
				a, err := result()
				require.NoError(t, err)
				require.Equal(t, "1", string(a.Result))
				require.Equal(t, 0, agents(t, h)[0].Running)
			})
		})
	}
}

// A stopped server ends its own runs, but their agents continue to work for the next server.
func TestAnswerAfterAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShelf()
		h := newHub(t, Options{Store: m})
		c := join(h, "a", 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		result := evaluating(ctx, reserve(t, h, want("x")), "x")
		got := <-c.got
		h.Leave()
		cancel(errors.New("the run is cancelled"))
		_, err := result()
		require.EqualError(t, err, "the run is cancelled")
		h.Close()

		h = newHub(t, Options{Store: m})
		waiting := reserving(t.Context(), h, want("x"))
		synctest.Wait()
		c, n := register(h, "a", 1)
		require.Equal(t, 1, n, "the agent still has the evaluation")
		require.Equal(t, Counted, c.answers(got, `1`))
		s, err := waiting()
		require.NoError(t, err)
		a, err := evaluating(t.Context(), s, "x")()
		require.NoError(t, err)
		require.Equal(t, "1", string(a.Result))
	})
}

func TestStoreThatFails(t *testing.T) {
	t.Parallel()
	m := newShelf()
	m.fault = errors.New("disk full")
	_, err := New(t.Context(), Options{Store: m})
	require.EqualError(t, err, "secret of evaluation ids: disk full")

	m.fault = nil
	h := newHub(t, Options{Store: m})
	c := join(h, "a", 1)
	m.fault = errors.New("disk full")
	require.Equal(t, Unknown, c.answers(sent{id: h.tags.add("x")}, `1`))
	m.fault = nil
	require.Equal(t, Kept, c.answers(sent{id: h.tags.add("x")}, `1`))
	m.fault = errors.New("disk broken")
	_, err = evaluating(t.Context(), reserve(t, h, want("x")), "x")()
	requireAgain(t, err, "room was released")
}

// Errors of the store are in the log.
func TestFailedStoreIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := newShelf()
	m.answers["x"] = &remote.Answer{}
	a := archive{m, slog.New(slog.NewTextHandler(&log, nil))}
	m.fault = errors.New("the disk is full")
	require.False(t, a.save("y", &remote.Answer{ClientID: "a"}))
	require.Nil(t, a.take(t.Context(), "x"))
	a.drop("x")
	for _, text := range []string{"answer could not be stored", "stored answer lost", "stored answer could not be removed"} {
		require.Contains(t, log.String(), text)
	}
	require.Equal(t, 3, strings.Count(log.String(), "the disk is full"))
}
