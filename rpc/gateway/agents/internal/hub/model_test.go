package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/runner/executor"
	"waza/runner/executor/remote"
)

// world is a hub with its clients and trials. Each trial retries until it is counted or
// cancelled, like in a run.
type world struct {
	t       *findings
	h       *Hub
	clients map[string]*client
	has     map[string][]sent // unanswered requests of connected clients
	old     []sent            // requests that were answered or lost with a connection
	trials  []*modelTrial
}

type modelTrial struct {
	id      string
	cancel  context.CancelFunc
	counted int
	over    chan struct{}
}

var errEnough = errors.New("cancelled")

func (w *world) start(priority string) {
	ctx, cancel := context.WithCancelCause(context.Background())
	tr := &modelTrial{id: fmt.Sprintf("r/t/%d/1", len(w.trials)), cancel: func() { cancel(errEnough) }, over: make(chan struct{})}
	w.trials = append(w.trials, tr)
	want := &remote.Want{ID: tr.id, Tool: "chat", Priority: priority}
	go func() {
		defer close(tr.over)
		for {
			s, err := w.h.Reserve(ctx, want)
			if err != nil {
				if ctx.Err() != nil {
					return
				}
				time.Sleep(time.Second) // all agents lack the tool
				continue
			}
			_, err = s.Evaluate(ctx, eval(tr.id), nil)
			s.Release()
			switch {
			case err == nil:
				tr.counted++
				return
			case executor.AsRetry(err) == nil || ctx.Err() != nil:
				return
			}
		}
	}()
}

// collect takes the requests that clients have received.
func (w *world) collect() {
	synctest.Wait()
	for id, c := range w.clients {
		for len(c.got) > 0 {
			w.has[id] = append(w.has[id], <-c.got)
		}
	}
}

func (w *world) join(id string, most int) {
	w.old = append(w.old, w.has[id]...)
	delete(w.has, id)
	w.clients[id] = join(w.h, id, most)
}

func (w *world) leave(id string) {
	w.clients[id].Left()
	delete(w.clients, id)
	w.old = append(w.old, w.has[id]...)
	delete(w.has, id)
}

func (w *world) answer(id string, i int, code int64) {
	got := w.has[id][i]
	w.has[id] = slices.Delete(w.has[id], i, i+1)
	if code != 0 {
		w.clients[id].fails(got, code, `{"retryAfter":5000}`)
		return
	}
	w.old = append(w.old, got)
	w.clients[id].answers(got, `1`)
}

// check checks the invariants that hold while nothing changes.
func (w *world) check() {
	h := w.h
	h.mu.Lock()
	defer h.mu.Unlock()
	require.NoError(w.t, h.pool.Verify())
	for _, a := range h.agentsLocked() {
		slots := a.member.Places()
		require.LessOrEqual(w.t, len(slots), a.MaxConcurrency, a.ClientID)
		for _, s := range slots {
			require.Same(w.t, a, s.agent)
			require.True(w.t, s.held || s.asked, "a slot without an agent")
			require.True(w.t, s.held || s.lingerEnd.Running(), "a slot that will never be released")
			require.Equal(w.t, s.asked, s.eval != nil && slices.Contains(h.asked[s.eval.ID], s))
		}
	}
	for _, tr := range w.trials {
		require.LessOrEqual(w.t, tr.counted, 1)
	}
}

// Agents connect, disconnect, answer late, twice or not at all, and refuse evaluations; trials
// start and are cancelled. No agent gets too many evaluations, no waiter is forgotten, each
// trial is counted once, and in the end the queue is empty.
func TestAnySequenceOfEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 60).Draw(rt, "steps")
		var found findings
		synctest.Test(t, func(t *testing.T) {
			h := newHub(t, Options{Store: newShelf()})
			w := &world{t: &found, h: h, clients: map[string]*client{}, has: map[string][]sent{}}
			defer w.end()
			for _, s := range steps {
				w.step(s)
				w.collect()
				w.check()
			}
			w.finish()
		})
		if found.text != "" {
			rt.Fatal(found.text)
		}
	})
}

// findings collects violations, because rapid cannot be called within a bubble.
type findings struct{ text string }

func (f *findings) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }
func (f *findings) FailNow()                          { panic(f) }

// end ends everything, even after a violation.
func (w *world) end() {
	if r := recover(); r != nil && r != any(w.t) {
		panic(r)
	}
	for _, tr := range w.trials {
		tr.cancel()
		<-tr.over
	}
}

type step struct {
	What     string
	Client   string
	N        int
	Priority string
}

func drawStep(t *rapid.T) step {
	return step{
		What: rapid.SampledFrom([]string{
			"start", "start", "start", "join", "join", "leave", "answer", "answer", "answer", "answer old", "busy",
			"lacks", "cancel", "time", "long time", "kick", "register",
		}).Draw(t,
			"what"),
		Client:   rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "client"),
		N:        rapid.IntRange(0, 50).Draw(t, "n"),
		Priority: rapid.SampledFrom([]string{"", "high", "low"}).Draw(t, "priority"),
	}
}

func (w *world) step(s step) {
	connected := w.clients[s.Client] != nil
	has := len(w.has[s.Client])
	switch s.What {
	case "start":
		w.start(s.Priority)
	case "join":
		w.join(s.Client, 1+s.N%3)
	case "register":
		w.join(s.Client, 1)
		w.leave(s.Client)
		w.clients[s.Client], _ = register(w.h, s.Client, 2)
	case "leave":
		if connected {
			w.leave(s.Client)
		}
	case "kick":
		if connected {
			_ = w.h.Kick(context.Background(), s.Client, "no reason")
			w.leave(s.Client)
		}
	case "answer":
		if connected && has > 0 {
			w.answer(s.Client, s.N%has, 0)
		}
	case "answer old":
		if connected && len(w.old) > 0 {
			w.clients[s.Client].answers(w.old[s.N%len(w.old)], `2`)
		}
	case "busy":
		if connected && has > 0 {
			w.answer(s.Client, s.N%has, remote.CodeRateLimited)
		}
	case "lacks":
		if connected && has > 0 {
			w.answer(s.Client, s.N%has, remote.CodeInvalidTool)
		}
	case "cancel":
		if len(w.trials) > 0 {
			w.trials[s.N%len(w.trials)].cancel()
		}
	case "time":
		time.Sleep(time.Duration(s.N) * 100 * time.Millisecond)
	case "long time":
		time.Sleep(time.Duration(s.N) * time.Second)
	}
}

// finish lets one good agent execute all remaining evaluations.
func (w *world) finish() {
	for _, id := range []string{"a", "b", "c"} {
		if w.clients[id] != nil {
			w.leave(id)
		}
	}
	w.join("d", 2)
	for range 10 * (len(w.trials) + 10) {
		w.collect()
		w.check()
		if len(w.has["d"]) > 0 {
			w.answer("d", 0, 0)
		} else {
			time.Sleep(10 * time.Second)
		}
	}
	for _, tr := range w.trials {
		<-tr.over
		tr.cancel()
	}
	synctest.Wait()
	w.check()
	require.Zero(w.t, w.h.pool.Waiting())
	require.Zero(w.t, w.h.pool.Occupied())
	require.Empty(w.t, w.h.asked)
	for _, tr := range w.trials {
		require.LessOrEqual(w.t, tr.counted, 1)
	}
}
