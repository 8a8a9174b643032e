package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/executor/remote"
)

func TestEvaluationGoesToTheAgentAndBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c := join(h, "a", 1, "chat")
		s := reserve(t, h, want("r/t/1/1"))
		require.Equal(t, "a", s.ClientID())
		var updates []remote.Status
		done := make(chan *remote.Answer)
		go func() {
			a, _ := s.Evaluate(t.Context(), eval("r/t/1/1"), func(st remote.Status) { updates = append(updates, st) })
			done <- a
		}()
		got := <-c.got
		require.Equal(t, eval("r/t/1/1"), got.eval)
		id, ok := h.evaluationID(got.id)
		require.True(t, ok)
		require.Equal(t, "r/t/1/1", id)
		half := 0.5
		c.Status("r/t/1/1", remote.Status{Status: "running", Progress: &half})
		c.Status("r/t/2/1", remote.Status{Status: "running"})
		require.Equal(t, Counted, c.answers(got, `0`))
		require.Equal(t, &remote.Answer{ClientID: "a", Result: json.RawMessage(`0`)}, <-done)
		require.Equal(t, []remote.Status{{Status: "running", Progress: &half}}, updates)
		require.Equal(t, 1, agents(t, h)[0].Running)
		s.Release()
		s.Release()
		require.Equal(t, 0, agents(t, h)[0].Running)
		require.EqualValues(t, 1, agents(t, h)[0].Answered)
	})
}

func TestWaitersAreServedByPriorityThenInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		var waiting []func() (remote.Slot, error)
		order := make(chan string, 10)
		for _, w := range []*remote.Want{
			{ID: "low", Tool: "chat", Priority: "low"}, {ID: "1", Tool: "chat"}, {ID: "other tool", Tool: "look"},
			{ID: "2", Tool: "chat", Priority: "normal"}, {ID: "high", Tool: "chat", Priority: "high"}, {ID: "3", Tool: "chat"},
		} {
			wait := reserving(t.Context(), h, w)
			waiting = append(waiting, func() (remote.Slot, error) {
				s, err := wait()
				order <- w.ID
				return s, err
			})
			synctest.Wait()
		}
		var all sync.WaitGroup
		for _, wait := range waiting {
			all.Go(func() {
				if s, err := wait(); err == nil {
					time.Sleep(time.Second)
					s.Release()
				}
			})
		}
		_ = join(h, "a", 1)
		var got []string
		for range 6 {
			got = append(got, <-order)
		}
		all.Wait()
		require.Equal(t, []string{"high", "1", "other tool", "2", "3", "low"}, got)
		require.Zero(t, h.pool.Waiting())
	})
}

func TestAgentsHaveNoMoreThanTheyTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		join(h, "a", 2, "chat")
		join(h, "b", 1, "look")
		var slots []remote.Slot
		for i := range 2 {
			slots = append(slots, reserve(t, h, want(fmt.Sprint(i))))
		}
		third := reserving(t.Context(), h, want("2"))
		ctx, cancel := context.WithCancelCause(t.Context())
		fourth := reserving(ctx, h, want("3"))
		synctest.Wait()
		require.Equal(t, 2, h.pool.Waiting())
		cancel(errors.New("enough"))
		_, err := fourth()
		require.EqualError(t, err, "enough")
		slots[0].Release()
		s, err := third()
		require.NoError(t, err)
		require.Equal(t, "a", s.ClientID())
		require.Zero(t, h.pool.Waiting())
	})
}

func TestAgentsTakeTurns(t *testing.T) {
	t.Parallel()
	h := newHub(t, Options{})
	for _, id := range []string{"a", "b", "c"} {
		join(h, id, 2)
	}
	got := map[string]int{}
	for i := range 3 {
		got[reserve(t, h, want(fmt.Sprint(i))).ClientID()]++
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, got)
}

func TestOnlyClientsThatAreNamedGetIt(t *testing.T) {
	t.Parallel()
	h := newHub(t, Options{})
	join(h, "base-1:tab", 1)
	join(h, "base-2", 1)
	w := want("x")
	w.Clients = []string{"base-2"}
	require.Equal(t, "base-2", reserve(t, h, w).ClientID())
	w = want("y")
	w.Clients = []string{"base-1"}
	require.Equal(t, "base-1:tab", reserve(t, h, w).ClientID())
}

func TestAgentsThatAreNotReadyGetNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c, n := register(h, "a", 1)
		require.Zero(t, n)
		wait := reserving(t.Context(), h, want("x"))
		synctest.Wait()
		require.Equal(t, remote.Registered, agents(t, h)[0].State)
		require.Equal(t, 1, h.pool.Waiting())
		c.Ready()
		s, err := wait()
		require.NoError(t, err)
		require.Equal(t, "a", s.ClientID())
	})
}

func TestPausedAgentIsLeftAlone(t *testing.T) {
	t.Parallel()
	for data, pause := range map[string]time.Duration{
		`{"retryAfter":2500}`: 2500 * time.Millisecond, ``: time.Second, `{}`: time.Second, `{"retryAfter":"soon"}`: time.Second,
		`{"retryAfter":0}`: 100 * time.Millisecond, `{"retryAfter":-1}`: 100 * time.Millisecond, `{"retryAfter":1e300}`: 10 * time.Minute,
	} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHub(t, Options{})
				c := join(h, "a", 5)
				result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
				start := time.Now()
				require.Equal(t, TurnedAway, c.fails(<-c.got, remote.CodeRateLimited, data))
				_, err := result()
				requireAgain(t, err, "overloaded")
				require.Equal(t, remote.Paused, agents(t, h)[0].State)
				reserve(t, h, want("x"))
				require.Equal(t, pause, time.Since(start))
				require.Equal(t, remote.Ready, agents(t, h)[0].State)
			})
		})
	}
}

func TestToolThatAnAgentLacksIsOfferedToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		a := join(h, "a", 1)
		result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		b, _ := register(h, "b", 1)
		waiting := reserving(t.Context(), h, want("y"))
		synctest.Wait()
		require.Equal(t, TurnedAway, a.fails(<-a.got, remote.CodeInvalidTool, ""))
		_, err := result()
		requireAgain(t, err, "lacks the tool chat")
		require.Equal(t, []string{"chat"}, agents(t, h)[0].Lacks)

		synctest.Wait()
		require.Equal(t, 1, h.pool.Waiting(), "b may have the tool when it is ready")
		b.Ready()
		s, err := waiting()
		require.NoError(t, err)
		require.Equal(t, "b", s.ClientID())
		result = evaluating(t.Context(), s, "y")
		waiting = reserving(t.Context(), h, want("z"))
		synctest.Wait()
		require.Equal(t, TurnedAway, b.fails(<-b.got, remote.CodeInvalidTool, ""))
		_, err = result()
		requireAgain(t, err, "lacks the tool")
		z, err := waiting()
		require.NoError(t, err, "no agent has refused z")
		s.Release()
		z.Release()
		s = reserve(t, h, want("y"))
		require.Equal(t, "a", s.ClientID(), "b refused it")
		result = evaluating(t.Context(), s, "y")
		synctest.Wait()
		require.Equal(t, TurnedAway, a.fails(<-a.got, remote.CodeInvalidTool, ""))
		_, err = result()
		requireAgain(t, err, "lacks the tool")
		s.Release()
		_, err = h.Reserve(t.Context(), want("y"))
		require.Equal(t, &remote.NoToolError{Tool: "chat"}, err, "both agents refused it")
		reserve(t, h, want("after")).Release()

		// An agent that registers again may have the tool.
		join(h, "b", 1)
		require.Equal(t, "b", reserve(t, h, want("y")).ClientID())
	})
}

// An agent refuses one evaluation because of its tool. Others with the same tool wait for the
// same agent, and it gets them all.
func TestOneRefusalFailsNoOtherEvaluation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		a := join(h, "a", 1)
		s := reserve(t, h, want("x"))
		result := evaluating(t.Context(), s, "x")
		var waiting []func() (remote.Slot, error)
		for i := range 5 {
			waiting = append(waiting, reserving(t.Context(), h, want(fmt.Sprint("y", i))))
			synctest.Wait()
		}
		require.Equal(t, TurnedAway, a.fails(<-a.got, remote.CodeInvalidTool, ""))
		_, err := result()
		requireAgain(t, err, "lacks the tool")
		s.Release()
		_, err = h.Reserve(t.Context(), want("x"))
		require.Equal(t, &remote.NoToolError{Tool: "chat"}, err)
		for i, next := range waiting {
			s, err := next()
			require.NoError(t, err)
			result := evaluating(t.Context(), s, fmt.Sprint("y", i))
			require.Equal(t, Counted, a.answers(<-a.got, `1`))
			_, err = result()
			require.NoError(t, err)
			s.Release()
		}
	})
}

// The last agent that may have the tool leaves; the others have reported that they lack it for
// other evaluations.
func TestLastAgentWithAToolLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		a := join(h, "a", 1)
		result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		a.fails(<-a.got, remote.CodeInvalidTool, "")
		_, err := result()
		requireAgain(t, err, "lacks")
		b, _ := register(h, "b", 1)
		waiting := reserving(t.Context(), h, want("y"))
		synctest.Wait()
		b.Left()
		s, err := waiting()
		require.NoError(t, err)
		require.Equal(t, "a", s.ClientID())
	})
}

func TestAbandonedEvaluationKeepsItsRoomForAWhile(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]bool{"until the agent answers": true, "at most 30 s": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHub(t, Options{})
				c := join(h, "a", 1)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too late"))
				defer cancel()
				result := evaluating(ctx, reserve(t, h, want("x")), "x")
				got := <-c.got
				_, err := result()
				require.EqualError(t, err, "too late")
				start := time.Now()
				waiting := reserving(t.Context(), h, want("y"))
				if answers {
					time.Sleep(7 * time.Second)
					require.Equal(t, Cancelled, c.answers(got, `1`))
				}
				_, err = waiting()
				require.NoError(t, err)
				if answers {
					require.Equal(t, 7*time.Second, time.Since(start))
				} else {
					require.Equal(t, 30*time.Second, time.Since(start))
				}
				require.NotEqual(t, Counted, c.answers(got, `1`))
			})
		})
	}
}

// The agent is not to blame for a deadline that passes while it is disconnected.
func TestContextEndsWhileTheAgentIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c := join(h, "a", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		result := evaluating(ctx, reserve(t, h, want("x")), "x")
		<-c.got
		c.Left()
		_, err := result()
		requireAgain(t, err, "disconnected")
		require.Empty(t, agents(t, h))
	})
}

func TestEvaluationThatCannotBeSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c := join(h, "a", 1)
		c.fault = errors.New("input: not JSON")
		_, err := evaluating(t.Context(), reserve(t, h, want("x")), "x")()
		require.EqualError(t, err, "input: not JSON")
		require.Equal(t, 0, agents(t, h)[0].Running)
	})
}

func TestKickedAgentsEvaluationsGoElsewhereAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c := join(h, "base:1", 1)
		result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		<-c.got
		require.EqualError(t, h.Kick(t.Context(), "other", "why"), `agent "other" is not connected`)
		require.NoError(t, h.Kick(t.Context(), "base", "it hangs"))
		require.Equal(t, []string{"kicked: it hangs"}, c.ended())
		_, err := result()
		requireAgain(t, err, "it hangs")
		c.Left()
		require.Empty(t, agents(t, h))
	})
}

func TestStrangeAnswersAreIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c := join(h, "a", 1)
		result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		got := <-c.got
		for _, id := range []string{"", "x", "x.", ".", "x.AAAAAAAAAAAAAAAA", "y" + got.id[1:], got.id + "A"} {
			require.Equal(t, Unknown, c.answers(sent{id: id}, `1`), id)
			require.Equal(t, Unknown, c.fails(sent{id: id}, remote.CodeRateLimited, ""), id)
		}
		require.Equal(t, Counted, c.answers(got, `1`))
		_, err := result()
		require.NoError(t, err)
		require.Equal(t, Unknown, c.fails(got, remote.CodeInvalidTool, ""))
		require.Empty(t, agents(t, h)[0].Lacks)
	})
}

func TestWatchersSeeTheNewestState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		join(h, "a", 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		seen := make(chan string)
		ended := make(chan error)
		go func() {
			ended <- h.Watch(ctx, func(a *remote.Agent) { seen <- fmt.Sprint(a.ClientID, " ", a.State, " ", a.Running) })
		}()
		require.Equal(t, "a ready 0", <-seen)
		c, _ := register(h, "b", 1)
		require.Equal(t, "b registered 0", <-seen)
		synctest.Wait()
		c.Ready()
		require.Equal(t, "b ready 0", <-seen)
		synctest.Wait()
		s := reserve(t, h, &remote.Want{ID: "x", Tool: "chat", Clients: []string{"a"}})
		require.Equal(t, "a ready 1", <-seen)
		synctest.Wait() // the watcher blocks, and misses the changes in between
		s.Release()
		require.Equal(t, "a ready 0", <-seen)
		synctest.Wait()
		c.Left()
		require.Equal(t, "b gone 0", <-seen)
		cancel(errors.New("seen enough"))
		require.EqualError(t, <-ended, "seen enough")
	})
}
