package agent_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/rpc/client/agent"
	"waza/rpc/gateway/agents"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/executor/remote"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/runnertest"
)

const examples = "../../../docs/examples"

// serve starts a server at an address for agents with the key; ":0" means any free port. The
// returned function shuts the server down.
func serve(t *testing.T, address, key string) (hub remote.Hub, bound net.Addr, stop func()) {
	t.Helper()
	c := agents.Defaults()
	c.Listen = address
	s, err := agents.New(c, agents.Options{Key: key})
	require.NoError(t, err)
	bound, err = s.Door().Listen()
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Door().Serve(context.Background()) }()
	return s.Hub(), bound, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Door().Shutdown(ctx)
		<-served
		s.Close()
	}
}

// runExample runs the suite of the examples on the hub's agents.
func runExample(t *testing.T, hub remote.Hub) runnertest.Result {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(remote.New(hub))})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close(context.Background())) }()
	suite, ds, err := eval.Load(filepath.Join(examples, "remote"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.Empty(t, ds)
	p, err := r.Planner().Plan(t.Context(), suite, record.Request{})
	require.NoError(t, err)
	live, err := r.Start(p)
	require.NoError(t, err)
	select {
	case <-live.Done():
	case <-time.After(time.Minute):
		t.Error("the agent did not connect: " + runnertest.Logs(runnertest.Follow(t, live, 1)))
		live.Cancel()
	}
	return runnertest.ResultOf(t, live)
}

// The agents in the documentation execute the suite there exactly as printed, and again after a
// restart of the server.
func TestExamples(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"agent.mjs": {"node", "--experimental-websocket", "--no-warnings"},
		"agent.py":  {"python3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(command[0] + " is not installed")
			}
			source, err := os.ReadFile(filepath.Join(examples, name))
			require.NoError(t, err)
			require.LessOrEqual(t, strings.Count(string(source), "\n"), 60)
			hub, address, stop := serve(t, "127.0.0.1:0", "key of the test")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var stderr proc.Limited
			stderr.Max = 1 << 16
			agent, err := proc.Start(ctx, proc.Command{
				Args: append(command, filepath.Join(examples, name), fmt.Sprintf("ws://%s", address)),
				Env:  append(os.Environ(), "WAZA_AGENT_KEY=key of the test"), Stderr: &stderr,
			})
			require.NoError(t, err)
			res := runExample(t, hub)
			require.Equal(t, 6, res.Summary.Trials.Passed)
			require.Equal(t, "You said: Hello from greet, trial 1", res.Tasks[0].Trials[0].Output)
			stop()
			hub, _, stop = serve(t, address.String(), "key of the test")
			require.Equal(t, 6, runExample(t, hub).Summary.Trials.Passed)
			stop()
			cancel()
			require.Error(t, agent.Wait())
			require.NotContains(t, stderr.String(), "key of the test")
		})
	}
}

// waza's own agent executes the same suite with a program.
func TestProgramAsAgent(t *testing.T) {
	t.Parallel()
	hub, address, stop := serve(t, "127.0.0.1:0", "k")
	p, err := agent.NewProgram(`printf 'You said: '; cat`, t.TempDir(), false)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- agent.Run(ctx, agent.Options{URL: "ws://" + address.String(), ClientID: id, Key: "k", Concurrency: 2, Do: p.Do})
	}()
	require.Equal(t, 6, runExample(t, hub).Summary.Trials.Passed)
	stop()
	hub, _, stop = serve(t, address.String(), "k")
	require.Equal(t, 6, runExample(t, hub).Summary.Trials.Passed)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	stop()

}
