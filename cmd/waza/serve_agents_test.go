//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/pause"
	"waza/runner/proc/proctest"
)

// wireAgent is an evaluation agent that implements only the protocol. It reconnects for ever,
// does every evaluation that it receives, and sends unsent answers over its next connection.
type wireAgent struct {
	id    string
	tools []string
	most  int
	work  func(ctx context.Context, e wireEvaluation) any // gives the result

	mu   sync.Mutex // guards the fields below
	conn *websocket.Conn
	owed [][]byte // answers that are not sent yet
	done map[string]int
}

type wireEvaluation struct {
	EvaluationID string
	Tool         string
	Input        map[string]any
	Timeout      int64
}

// trial is the number of the trial that an evaluation names.
func (e wireEvaluation) trial() int {
	parts := strings.Split(e.EvaluationID, "/")
	n, _ := strconv.Atoi(parts[len(parts)-3]) // run/task/trial/attempt/content
	return n
}

func wireID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// serve is the agent's life, until ctx ends.
func (a *wireAgent) serve(ctx context.Context, url string) {
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		a.connect(ctx, url, &working)
		_ = pause.For(ctx, time.Duration(10+rand.IntN(40))*time.Millisecond)
	}
}

func (a *wireAgent) connect(ctx context.Context, url string, working *sync.WaitGroup) {
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			Type, Status, Method string
			ID                   json.RawMessage
			Params               wireEvaluation
		}
		if json.Unmarshal(data, &m) != nil {
			return
		}
		switch {
		case m.Type == "welcome":
			register := map[string]any{
				"type": "register", "clientId": a.id,
				"capabilities": map[string]any{"tools": a.tools, "maxConcurrency": a.most, "version": "1.0.0"},
			}
			text, _ := json.Marshal(register)
			_ = conn.Write(ctx, websocket.MessageText, text)
		case m.Type == "registration_ack" && m.Status == "accepted":
			_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"ready","timestamp":"2026-01-01T00:00:00Z"}`))
			a.attach(ctx, conn)
		case m.Method == "evaluate":
			working.Go(func() {
				result := a.work(ctx, m.Params)
				if ctx.Err() != nil {
					return
				}
				text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
				a.answer(ctx, text, m.Params.EvaluationID)
			})
		}
	}
}

// attach makes a connection the one that answers go to, those first that are owed.
func (a *wireAgent) attach(ctx context.Context, conn *websocket.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
	a.flushLocked(ctx)
}

func (a *wireAgent) answer(ctx context.Context, text []byte, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done == nil {
		a.done = map[string]int{}
	}
	a.done[id]++
	a.owed = append(a.owed, text)
	a.flushLocked(ctx)
}

func (a *wireAgent) flushLocked(ctx context.Context) {
	for len(a.owed) > 0 && a.conn != nil {
		if a.conn.Write(ctx, websocket.MessageText, a.owed[0]) != nil {
			a.conn = nil
			return
		}
		a.owed = a.owed[1:]
	}
}

// startAgents lets agents live until the test ends.
func startAgents(t *testing.T, address string, agents ...*wireAgent) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var live sync.WaitGroup
	for _, a := range agents {
		live.Go(func() { a.serve(ctx, "ws://"+address) })
	}
	t.Cleanup(func() {
		cancel()
		live.Wait()
	})
}

// served is a server of agents that is killed and started again.
type served struct {
	*testing.T
	waza, state, agents, jobs string // the program, its state directory and addresses
	env                       []string
	mark                      string // in the environment of every process
	cmd                       *exec.Cmd
	log                       *syncBuffer
}

// syncBuffer takes the output of several processes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newServed(t *testing.T, waza string, env ...string) *served {
	t.Helper()
	s := &served{T: t, waza: waza, state: t.TempDir(), agents: proctest.FreeAddress(t), jobs: proctest.FreeAddress(t), log: &syncBuffer{}}
	s.mark = fmt.Sprintf("WAZA_TEST_MARK=%d-%s", os.Getpid(), t.Name())
	s.env = append(append(environment(t), env...), "WAZA_STATE="+s.state, s.mark)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("server's log:\n%s", s.log)
		}
	})
	return s
}

// start starts the server and waits until it is ready.
func (s *served) start() {
	s.Helper()
	s.cmd = exec.Command(s.waza, "serve", "--agents", s.agents, "--jobs", s.jobs)
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.env, s.log, s.log
	require.NoError(s, s.cmd.Start())
	for _, door := range []string{s.agents, s.jobs} {
		s.until("the server is ready", func() bool {
			conn, err := net.Dial("tcp", door)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
}

// stop ends the server in order.
func (s *served) stop() {
	s.Helper()
	require.NoError(s, s.cmd.Process.Signal(syscall.SIGTERM))
	within(s.T, "the server does not end", func() { _ = s.cmd.Wait() })
	code := s.cmd.ProcessState.ExitCode()
	require.Contains(s, []int{exit.Passed, exit.Interrupted}, code, "%s", s.log)
	s.cmd = nil
}

// kill ends the server like a system that is out of memory.
func (s *served) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// until polls for a state of other processes.
func (s *served) until(what string, holds func() bool) {
	s.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		require.True(s, time.Now().Before(deadline), "not in time: %s\n%s", what, s.log)
	}
}

// call asks the server by JSON-RPC over WebSocket.
func (s *served) call(method string, params, result any) {
	s.Helper()
	token, err := os.ReadFile(filepath.Join(s.state, "serve.token"))
	require.NoError(s, err)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+s.jobs+"/rpc?token="+strings.TrimSpace(string(token)), nil)
	require.NoError(s, err)
	defer conn.CloseNow()
	conn.SetReadLimit(64 << 20)
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(s, err)
	require.NoError(s, conn.Write(ctx, websocket.MessageText, text))
	for {
		_, data, err := conn.Read(ctx)
		require.NoError(s, err)
		var reply struct {
			ID     any
			Result json.RawMessage
			Error  any
		}
		require.NoError(s, json.Unmarshal(data, &reply))
		if reply.ID != nil {
			require.Nil(s, reply.Error, "%s", data)
			require.NoError(s, json.Unmarshal(reply.Result, result))
			return
		}
	}
}
