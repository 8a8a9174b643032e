package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/executor/remote"
)

// An agent that reconnects within the grace time gets its evaluations again with the same ids.
func TestAgentComesBack(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*client){
		"after its connection broke":  func(c *client) { c.Left() },
		"before its connection broke": func(*client) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHub(t, Options{})
				c := join(h, "a", 1)
				result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
				first := <-c.got
				leave(c)
				time.Sleep(9 * time.Second)
				back, n := register(h, "a", 1)
				require.Equal(t, 1, n)
				synctest.Wait()
				require.Empty(t, back.got, "nothing is sent before the agent is ready")
				back.Ready()
				again := <-back.got
				require.Equal(t, first, again)
				time.Sleep(time.Minute)
				c.Left() // late and without effect
				require.Equal(t, Counted, back.answers(again, `"done"`))
				require.Equal(t, Twice, c.answers(first, `"late"`))
				a, err := result()
				require.NoError(t, err)
				require.Equal(t, `"done"`, string(a.Result))
				require.Equal(t, 0, agents(t, h)[0].Running)
			})
		})
	}
}

// An agent that is asked again would send the same unreadable answer forever.
func TestAnswerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	fault := &remote.Fault{Code: -32600, Message: "too large"}
	t.Run("one evaluation", func(t *testing.T) {
		t.Parallel()
		h := newHub(t, Options{})
		c := join(h, "a", 1)
		result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		<-c.got
		c.Unreadable(fault)
		c.Left()
		a, err := result()
		require.NoError(t, err)
		require.Equal(t, &remote.Answer{ClientID: "a", Error: fault}, a)
		require.Empty(t, join(h, "a", 1).got)
	})
	t.Run("several", func(t *testing.T) {
		t.Parallel()
		h := newHub(t, Options{})
		c := join(h, "a", 2)
		x := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		y := evaluating(t.Context(), reserve(t, h, want("y")), "y")
		for range mostLost - 1 {
			<-c.got
			<-c.got
			c.Unreadable(fault)
			c.Left()
			c = join(h, "a", 2)
		}
		for range 2 {
			if s := <-c.got; s.eval.ID == "y" {
				require.Equal(t, Counted, c.answers(s, `"fine"`))
			}
		}
		c.Unreadable(fault)
		a, err := x()
		require.NoError(t, err)
		require.Equal(t, fault, a.Error)
		a, err = y()
		require.NoError(t, err)
		require.JSONEq(t, `"fine"`, string(a.Result))
	})
}

// An evaluation that crashes its agents ends, even if they reconnect late.
func TestEvaluationThatKillsItsAgents(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"they reconnect": time.Second, "others continue": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHub(t, Options{})
				result := func() error {
					for {
						s, err := h.Reserve(t.Context(), want("x"))
						if err != nil {
							return err
						}
						_, err = s.Evaluate(t.Context(), eval("x"), nil)
						s.Release()
						if executor.AsRetry(err) == nil {
							return err
						}
					}
				}
				done := make(chan error)
				go func() { done <- result() }()
				for range mostBreaks {
					c := join(h, "a", 1)
					<-c.got
					c.Left()
					time.Sleep(away)
				}
				require.EqualError(t, <-done, "agents disconnected 20 times during this evaluation, last a")
				require.Empty(t, h.asked)
				require.Empty(t, h.breaks)
			})
		})
	}
}

func TestNewerConnectionTakesOver(t *testing.T) {
	t.Parallel()
	h := newHub(t, Options{})
	c := join(h, "a", 1)
	join(h, "a", 1)
	require.Equal(t, []string{"dropped"}, c.ended())
	require.Len(t, agents(t, h), 1)
	// Registering twice on the same connection does not drop it.
	c.Client, _ = h.Register(c, remote.Agent{ClientID: "a", MaxConcurrency: 1})
	c.Client, _ = h.Register(c, remote.Agent{ClientID: "a", MaxConcurrency: 2})
	require.Equal(t, []string{"dropped"}, c.ended())
}

func TestVanishedAgentsEvaluationGoesBackToTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c := join(h, "a", 1)
		result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		first := <-c.got
		start := time.Now()
		c.Left()
		require.Equal(t, remote.Gone, agents(t, h)[0].State)
		_, err := result()
		requireAgain(t, err, "disconnected")
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Empty(t, agents(t, h))

		// Another agent gets it, but the first agent's answer still counts.
		b := join(h, "b", 1)
		result = evaluating(t.Context(), reserve(t, h, want("x")), "x")
		second := <-b.got
		require.Equal(t, first.id, second.id)
		c = join(h, "a", 1)
		require.Equal(t, Counted, c.answers(first, `1`))
		a, err := result()
		require.NoError(t, err)
		require.Equal(t, "a", a.ClientID)
		// b still works on it, and keeps its room for a while.
		require.Equal(t, 1, agents(t, h)[1].Running)
		require.Equal(t, Twice, b.answers(second, `2`))
		require.Equal(t, 0, agents(t, h)[1].Running)
	})
}

func TestAgentThatIsRegisteredButNotReadyDoesNotKeepEvaluations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Grace: 3 * time.Second})
		c := join(h, "a", 1)
		result := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		<-c.got
		c.Left()
		c, _ = register(h, "a", 1)
		_, err := result()
		requireAgain(t, err, "disconnected")
		require.Equal(t, remote.Registered, agents(t, h)[0].State)
		c.Ready()
		synctest.Wait()
		require.Empty(t, c.got)
	})
}

// An agent that reconnects with fewer capabilities keeps the evaluations it can still execute.
func TestAgentComesBackSmaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		c := join(h, "a", 3)
		look := &remote.Want{ID: "look", Tool: "look"}
		one := evaluating(t.Context(), reserve(t, h, look), "look")
		two := evaluating(t.Context(), reserve(t, h, want("x")), "x")
		three := evaluating(t.Context(), reserve(t, h, want("y")), "y")
		synctest.Wait()
		require.Len(t, c.got, 3)
		c, n := register(h, "a", 2, "chat")
		require.Equal(t, 1, n)
		_, err := one()
		requireAgain(t, err, "no longer accepts the evaluation")
		_, err = three()
		requireAgain(t, err, "no longer accepts the evaluation")
		c.Ready()
		require.Equal(t, Counted, c.answers(<-c.got, `1`))
		_, err = two()
		require.NoError(t, err)
	})
}
