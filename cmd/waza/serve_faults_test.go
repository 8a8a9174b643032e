//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/pause"
	"waza/runner/record"
)

// proxy passes connections on, as long as there is a network.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex // guards the fields below
	down  bool
	conns map[net.Conn]struct{}
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { p.pass(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.network(false)
		passing.Wait()
	})
	return p
}

func (p *proxy) pass(conn net.Conn) {
	defer conn.Close()
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	p.mu.Lock()
	down := p.down
	p.conns[conn], p.conns[far] = struct{}{}, struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, conn)
		delete(p.conns, far)
	}()
	if down {
		return
	}
	var back sync.WaitGroup
	defer back.Wait()
	back.Go(func() {
		_, _ = io.Copy(conn, far) // it ends when either end does
		conn.Close()
	})
	_, _ = io.Copy(far, conn)
	far.Close()
}

// network cuts all connections and refuses further ones, or takes them again.
func (p *proxy) network(up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = !up
	if !up {
		for c := range p.conns {
			c.Close()
		}
	}
}

// agentProcess starts `waza agent`, which answers what its program prints.
func (s *served) agentProcess(n int, address, program string, flags ...string) *exec.Cmd {
	s.Helper()
	args := append([]string{"agent", "--exec", program, "--connect", "ws://" + address, "--id", wireID(n)}, flags...)
	cmd := exec.Command(s.waza, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, s.log, s.log
	require.NoError(s, cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// agentsKnown lists the ids of the agents that the server has, with their states.
func (s *served) agentsKnown() map[string]string {
	s.Helper()
	out, _ := waza(s.T, s.env, "agents", "list", "--json")
	var list struct {
		Agents []struct{ ClientID, State string }
	}
	require.NoError(s, json.Unmarshal([]byte(out), &list), "%s", out)
	states := map[string]string{}
	for _, a := range list.Agents {
		states[a.ClientID] = a.State
	}
	return states
}

// Three agents, each with its own tool, do a suite. One is killed during a trial and restarted,
// one loses its network for five seconds, and the server is killed and restarted. Each trial
// counts once.
func TestServeFaults(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"server", "waza run"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			s := newServed(t, wazaPath(t))
			s.start()
			network := newProxy(t, s.agents)
			log := filepath.Join(t.TempDir(), "startedTrials")
			program := fmt.Sprintf("read -r prompt; echo startedTrials >>%s; sleep 0.3; echo fine: $prompt", log)
			startedTrials := func() int {
				b, _ := os.ReadFile(log) // it does not exist at first
				return bytes.Count(b, []byte("\n"))
			}
			first := s.agentProcess(1, s.agents, program, "--tools", "alpha")
			s.agentProcess(2, network.listener.Addr().String(), program, "--tools", "beta", "--concurrency", "3")
			s.agentProcess(3, s.agents, program, "--tools", "chat", "--concurrency", "2")
			s.until("three agents are ready", func() bool {
				states := s.agentsKnown()
				return states[wireID(1)] == "ready" && states[wireID(2)] == "ready" && states[wireID(3)] == "ready"
			})

			suite := filepath.Join(t.TempDir(), "eval.yaml")
			require.NoError(t, os.WriteFile(suite, []byte(`
name: three
config: {executor: remote, trials_per_task: 10}
graders: [{name: fine, type: text, config: {contains: [fine]}}]
tasks:
  - {id: a, prompt: with alpha, inputs: {tool: alpha}}
  - {id: b, prompt: with beta, inputs: {tool: beta}}
  - {id: c, prompt: by chat}
`), 0o600))
			var out bytes.Buffer
			ended := make(chan int, 1)
			if owner == "server" {
				var started struct{ RunID string }
				s.call("eval.run", map[string]any{"path": suite}, &started)
			} else {
				run := exec.Command(s.waza, "run", suite)
				run.Env, run.Stdout, run.Stderr = s.env, &out, &out
				require.NoError(t, run.Start())
				go func() {
					_ = run.Wait() // the exit code depends on the results
					ended <- run.ProcessState.ExitCode()
				}()
			}
			s.until("trials have started", func() bool { return startedTrials() >= 3 })
			require.NoError(t, first.Process.Kill())
			_ = first.Wait() // killed
			network.network(false)
			back := time.AfterFunc(5*time.Second, func() { network.network(true) })
			defer back.Stop()
			so := startedTrials()
			s.until("the third agent continues", func() bool { return startedTrials() > so })
			s.kill()
			require.NoError(t, pause.For(t.Context(), 200*time.Millisecond)) // without a server
			s.start()
			s.agentProcess(1, s.agents, program, "--tools", "alpha")
			s.until("the run has ended", func() bool { return s.result() != nil })
			if owner != "server" {
				require.Equal(t, exit.Passed, <-ended, out.String())
			}
			var got struct {
				Status record.Status
				Tasks  []struct{ Trials []record.Trial }
			}
			require.NoError(t, json.Unmarshal(s.result(), &got))
			require.Equal(t, record.StatusCompleted, got.Status)
			for _, task := range got.Tasks {
				require.Len(t, task.Trials, 10)
				for _, trial := range task.Trials {
					require.Equal(t, record.Passed, trial.Verdict, trial.Error)
					require.Empty(t, trial.Attempts)
					require.True(t, strings.HasPrefix(trial.Output, "fine: "), trial.Output)
				}
			}
		})
	}
}

// Without a server or an agent, a run prints what it waits for, and can be cancelled.
func TestRunWithoutAgents(t *testing.T) {
	t.Parallel()
	s := newServed(t, wazaPath(t))
	suite := remoteSuite(t, 1)
	c := startWaza(t, s.env, "run", suite)
	c.says(t, "waza serve") // there is no server
	_, code := waza(t, append(s.env, "PWD="+filepath.Dir(suite)), "runs", "cancel", "latest")
	require.Equal(t, exit.Passed, code)
	require.Equal(t, exit.Interrupted, c.exitCode(t))

	s.start()
	c = startWaza(t, s.env, "run", suite)
	c.says(t, "no agent")
	startAgents(t, s.agents, worker(seeded(t), 1, 1, 10*time.Millisecond))
	require.Equal(t, exit.Failed, c.exitCode(t))
}
