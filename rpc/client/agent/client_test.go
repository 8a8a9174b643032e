package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/client/agent"
	"waza/runner/executor/remote"
	"waza/runner/proc/proctest"
)

const id = "550e8400-e29b-41d4-a716-446655440000"

// server is the server's end of one connection, controlled by the test.
type server struct {
	t        *testing.T
	toClient chan string
	received chan string
	closed   chan struct{}
	once     sync.Once
}

func newServer(t *testing.T) *server {
	return &server{t: t, toClient: make(chan string, 1000), received: make(chan string, 1000), closed: make(chan struct{})}
}

func (s *server) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-s.toClient:
		return []byte(m), nil
	case <-s.closed:
		return nil, errors.New("closed")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *server) Write(_ context.Context, m []byte) error {
	select {
	case <-s.closed:
		return errors.New("closed")
	default:
		s.received <- string(m)
		return nil
	}
}

func (s *server) Close() { s.once.Do(func() { close(s.closed) }) }

// next returns the client's next message other than a status, without its times.
func (s *server) next() string {
	for {
		m := <-s.received
		var v map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(m), &v))
		if v["type"] == "status" {
			continue
		}
		if v["timestamp"] != nil {
			v["timestamp"] = "T"
		}
		b, err := json.Marshal(v)
		require.NoError(s.t, err)
		return string(b)
	}
}

// accept registers the client.
func (s *server) accept() {
	s.toClient <- `{"type":"welcome","serverId":"s","version":"1.0.0"}`
	register := s.next()
	require.Contains(s.t, register, `"type":"register"`)
	s.toClient <- `{"type":"registration_ack","clientId":"` + id + `","status":"accepted"}`
	require.JSONEq(s.t, `{"type":"ready","timestamp":"T"}`, s.next())
}

// start runs an agent that connects to these servers in turn, and then to none. The returned
// function ends the agent.
func start(t *testing.T, o agent.Options, servers ...*server) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	o.URL, o.ClientID = "ws://test", id
	var next int
	go func() {
		done <- agent.RunOver(ctx, o, func(ctx context.Context, _ string) (agent.Conn, error) {
			if next == len(servers) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			next++
			if servers[next-1] == nil {
				return nil, errors.New("refused")
			}
			return servers[next-1], nil
		})
	}()
	return func() error {
		cancel(errors.New("enough"))
		return <-done
	}
}

// echo answers with the tool.
func echo(_ context.Context, e *remote.Evaluation, _ func(string)) (any, *remote.Fault) {
	return map[string]any{"status": "success", "output": e.Tool}, nil
}

func request(rpcID, tool string) string {
	return `{"jsonrpc":"2.0","method":"evaluate","params":{"evaluationId":"e","tool":"` + tool +
		`","input":{},"timeout":1000},"id":"` + rpcID + `"}`
}

func TestRegisterAndEvaluate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		stop := start(t, agent.Options{Key: "k", Tools: []string{"a"}, Concurrency: 3, Do: echo}, s)
		s.toClient <- `{"type":"welcome"}`
		require.JSONEq(t, `{"type":"register","clientId":"`+id+
			`","secretKey":"k","capabilities":{"tools":["a"],"maxConcurrency":3,"version":"1.0.0"}}`,
			s.next())
		s.toClient <- `{"type":"registration_ack","status":"accepted"}`
		require.JSONEq(t, `{"type":"ready","timestamp":"T"}`, s.next())
		s.toClient <- "no JSON"
		s.toClient <- `{"type":"pong"}`
		s.toClient <- `{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"},"id":null}`
		s.toClient <- `{"jsonrpc":"2.0","method":"other","id":7}`
		require.JSONEq(t, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":7}`, s.next())
		s.toClient <- `{"jsonrpc":"2.0","method":"evaluate","id":8,"params":[]}`
		require.Contains(t, s.next(), `"code":-32602`)
		s.toClient <- request("1", "chat")
		require.JSONEq(t, `{"jsonrpc":"2.0","result":{"status":"success","output":"chat"},"id":"1"}`, s.next())
		require.EqualError(t, stop(), "enough")
	})
}

// A repeated request is executed once.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		free := make(chan struct{})
		do := func(_ context.Context, e *remote.Evaluation, _ func(string)) (any, *remote.Fault) {
			calls = append(calls, e.Tool)
			<-free
			return e.Tool, nil
		}
		first, second := newServer(t), newServer(t)
		stop := start(t, agent.Options{Do: do}, first, nil, second)
		first.accept()
		first.toClient <- request("1", "one")
		first.toClient <- request("1", "one")
		synctest.Wait()
		first.toClient <- request("2", "two")
		require.Contains(t, first.next(), `"code":-32003,"data":{"retryAfter":1000}`)
		first.Close()
		synctest.Wait()
		close(free) // the evaluation ends without a connection
		answer := `{"jsonrpc":"2.0","result":"one","id":"1"}`
		second.accept()
		require.JSONEq(t, answer, second.next(), "without being asked")
		second.toClient <- request("1", "one")
		require.JSONEq(t, answer, second.next())
		require.Equal(t, []string{"one"}, calls)
		require.EqualError(t, stop(), "enough")
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := newServer(t)
		stop := start(t, agent.Options{Do: func(context.Context, *remote.Evaluation, func(string)) (any, *remote.Fault) {
			calls++
			return 1, nil
		}}, s)
		s.accept()
		for i := range agent.MaxRemembered + 1 {
			s.toClient <- request(fmt.Sprint(i), "x")
			s.next()
			synctest.Wait()
		}
		for _, again := range []string{"0", fmt.Sprint(agent.MaxRemembered)} {
			s.toClient <- request(again, "x")
			s.next()
		}
		require.Equal(t, agent.MaxRemembered+2, calls, "only the oldest was forgotten")
		require.Error(t, stop())
	})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		stop := start(t, agent.Options{Do: func(ctx context.Context, _ *remote.Evaluation, _ func(string)) (any, *remote.Fault) {
			<-ctx.Done()
			return nil, &remote.Fault{Code: remote.CodeToolFailed, Message: "killed"}
		}}, s)
		s.accept()
		started := time.Now()
		s.toClient <- request("1", "x")
		require.JSONEq(t, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Evaluation exceeded its timeout of 1000 ms"},"id":"1"}`, s.next())
		require.Equal(t, time.Second, time.Since(started))
		require.Error(t, stop())
	})
}

// An agent that ends sends no answer: the server assigns its evaluations to other agents.
func TestStopWhileEvaluating(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		ended := false
		stop := start(t, agent.Options{Do: func(ctx context.Context, _ *remote.Evaluation, _ func(string)) (any, *remote.Fault) {
			<-ctx.Done()
			time.Sleep(time.Second) // until its processes have ended
			ended = true
			return nil, &remote.Fault{Code: remote.CodeToolFailed}
		}}, s)
		s.accept()
		s.toClient <- request("1", "x")
		synctest.Wait()
		<-s.received // its status
		require.EqualError(t, stop(), "enough")
		require.True(t, ended)
		require.Empty(t, s.received)
	})
}

func TestPanicAndUnencodable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		stop := start(t, agent.Options{Do: func(_ context.Context, e *remote.Evaluation, _ func(string)) (any, *remote.Fault) {
			switch e.Tool {
			case "panic":
				panic("oh")
			case "large":
				return strings.Repeat("x", 8<<20), nil
			}
			return func() {}, nil
		}}, s)
		s.accept()
		for tool, want := range map[string]string{
			"panic": "Internal error: oh", "func": "Internal error: json",
			"large": "the result has 8388610 bytes, the maximum is 7340032",
		} {
			s.toClient <- request(tool, tool)
			answer := s.next()
			require.Contains(t, answer, `"code":-32603`)
			require.Contains(t, answer, want)
			synctest.Wait()
		}
		require.Error(t, stop())
	})
}

func TestPingsAndSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := newServer(t), newServer(t)
		stop := start(t, agent.Options{Do: echo}, first, second)
		first.accept()
		started := time.Now()
		for i := range 4 { // the silence ends the connection before the fifth ping
			require.JSONEq(t, `{"type":"ping","timestamp":"T"}`, first.next())
			require.Equal(t, time.Duration(i+1)*30*time.Second, time.Since(started).Truncate(time.Second))
			if i < 2 {
				first.toClient <- `{"type":"pong"}`
			}
		}
		<-first.closed // 90 s after the last answer
		require.Equal(t, 150*time.Second, time.Since(started).Truncate(time.Second))
		second.accept()
		require.Error(t, stop())
	})
}

// The pauses grow, are random, and start again after a connection that lasted.
func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		steady := newServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- agent.RunOver(ctx, agent.Options{
				URL: "ws://test", ClientID: id, Do: echo,
			}, func(ctx context.Context, _ string) (agent.Conn, error) {
				at = append(at, time.Now())
				switch len(at) {
				case 12:
					return steady, nil
				case 14:
					cancel()
				}
				return nil, errors.New("refused")
			})
		}()
		steady.accept()
		time.Sleep(time.Minute)
		steady.Close()
		require.ErrorIs(t, <-done, context.Canceled)
		require.InDelta(t, 375, at[1].Sub(at[0]).Milliseconds(), 125)
		for i := 8; i < 12; i++ {
			require.InDelta(t, 22.5, at[i].Sub(at[i-1]).Seconds(), 7.5)
		}
		require.InDelta(t, 60.375, at[12].Sub(at[11]).Seconds(), 0.125)
	})
}

func TestRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.toClient <- `{"type":"welcome"}`
		s.toClient <- `{"type":"registration_ack","status":"rejected","reason":"Invalid secret key"}`
		err := agent.RunOver(t.Context(), agent.Options{ClientID: id, Do: echo},
			func(context.Context, string) (agent.Conn, error) { return s, nil })
		require.EqualError(t, err, "the server rejected the agent: Invalid secret key")

		// After a first acceptance, the agent waits until the server accepts it again.
		first, second, third := newServer(t), newServer(t), newServer(t)
		stop := start(t, agent.Options{Do: echo}, first, second, third)
		first.accept()
		first.Close()
		second.toClient <- `{"type":"registration_ack","status":"rejected"}`
		third.accept()
		require.EqualError(t, stop(), "enough")
	})
}

// The agent disconnects from a server that never accepts it.
func TestNotAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mute, second := newServer(t), newServer(t)
		started := time.Now()
		stop := start(t, agent.Options{Do: echo}, mute, second)
		<-mute.closed
		require.Equal(t, 30*time.Second, time.Since(started))
		second.accept()
		require.Error(t, stop())
	})
}

// An id is free as soon as it is released, even while this process starts a child.
func TestIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, releaseA, err := agent.Identity(dir)
	require.NoError(t, err)
	require.True(t, remote.IsID(a))
	b, releaseB, err := agent.Identity(dir)
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	proctest.Inherit(t, filepath.Join(dir, "1.id"))
	releaseA()
	again, release, err := agent.Identity(dir)
	require.NoError(t, err)
	require.Equal(t, a, again)
	release()
	releaseB()
}
