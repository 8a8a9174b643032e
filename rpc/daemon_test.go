package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/host"
	"waza/runner/proc/proctest"
)

// daemonEnv turns the test binary into a daemon: "stdio", or the path of a socket.
const daemonEnv = "WAZA_RPC_TEST_DAEMON"

// daemon runs the daemon like the command line. It also writes text to its standard output that
// clients must not see.
func daemon() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	out, err := host.TakeStdout()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	fmt.Println("noise by os.Stdout")
	_, _ = syscall.Write(1, []byte("noise by its descriptor\n"))
	d := rpc.Door{Listening: func(a net.Addr) { fmt.Fprintln(os.Stderr, "listening") }}
	if path := os.Getenv(daemonEnv); path != "stdio" {
		d.Socket = path
	}
	return rpc.Main(ctx, os.Stdin, out, os.Stderr, rpc.Options{}, d)
}

// A process is a daemon with the client's ends of its pipes.
type process struct {
	*client
	cmd    *exec.Cmd
	reap   func() error // can be called several times
	stderr *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex // guards b
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

func spawn(t testing.TB, state, door string) *process {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(exe), stderr: &syncBuffer{}}
	p.cmd.Env = append(os.Environ(), daemonEnv+"="+door, "WAZA_STATE="+state)
	p.cmd.Stderr = p.stderr
	in, w, err := os.Pipe()
	require.NoError(t, err)
	r, out, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdin, p.cmd.Stdout = in, out
	proctest.Start(t, p.cmd)
	in.Close()
	out.Close()
	p.reap = sync.OnceValue(p.cmd.Wait)
	t.Cleanup(func() {
		w.Close()
		r.Close()
		_ = p.cmd.Process.Kill()
		_ = p.reap()
	})
	require.NoError(t, r.SetReadDeadline(time.Now().Add(patience)))
	p.client = &client{TB: t, w: w, r: r, scan: bufio.NewReaderSize(r, 1<<20)}
	return p
}

// code waits for the process to end and returns its exit code.
func (p *process) code() int {
	p.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.reap()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(p, "the process did not end", p.stderr.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// The client sees only protocol messages, whatever else is written to standard output.
func TestStdoutIsProtocol(t *testing.T) {
	t.Parallel()
	p := spawn(t, t.TempDir(), "stdio")
	id := p.start(map[string]any{"path": suite(t, short)})
	p.follow(id)
	require.NoError(t, p.w.Close())
	require.Empty(t, p.rest())
	require.Equal(t, 0, p.code())
	require.Contains(t, p.stderr.String(), "noise by os.Stdout\nnoise by its descriptor\n")
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(p *process)
		code int
	}{
		"empty input":   {func(p *process) { p.w.Close() }, 0},
		"shutdown exit": {func(p *process) { p.must("shutdown", nil, nil); p.request("exit", nil) }, 0},
		"exit":          {func(p *process) { p.request("exit", nil) }, 1},
		"client gone":   {func(p *process) { p.w.Close(); p.r.Close() }, 1},
		"output gone":   {func(p *process) { p.r.Close() }, 1},
		"SIGTERM":       {func(p *process) { require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM)) }, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t, t.TempDir(), "stdio")
			if name != "empty input" {
				p.start(map[string]any{"path": suite(t, slow)})
				p.wait("trial_start")
			}
			c.do(p)
			require.Equal(t, c.code, p.code(), p.stderr.String())
		})
	}
}

// After the client is killed, no process remains, however many agents sleep.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("needs /proc to find processes")
	}
	mark := newMark()
	path := suite(t, `
name: sleepers
config:
  executor: command
  sandbox: off
  command: [sh, -c, "sleep `+mark+` & sleep `+mark+`"]
  trials_per_task: 50
  parallel: true
  workers: 50
tasks:
  - id: a
    prompt: sleep
    graders:
      - {type: text, name: any, config: {regex_match: ["."]}}
`)
	p := spawn(t, t.TempDir(), "stdio")
	p.start(map[string]any{"path": path})
	require.Eventually(t, func() bool { return sleepers(mark) >= 100 }, patience, 20*time.Millisecond)
	p.w.Close()
	p.r.Close()
	require.Equal(t, 1, p.code(), p.stderr.String())
	// They have been killed, but on a busy machine they may not have ended yet.
	require.Eventually(t, func() bool { return sleepers(mark) == 0 }, patience, 20*time.Millisecond)
}

// sleepers counts the processes with mark as an argument of sleep.
func sleepers(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && string(b) == "sleep\x00"+mark+"\x00" {
			n++
		}
	}
	return n
}

// Other daemons list the runs of a killed daemon as interrupted, and report that to subscribers.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	first := spawn(t, state, "stdio")
	id := first.start(map[string]any{"path": suite(t, slow)})
	first.wait("trial_start")

	second := spawn(t, state, "stdio")
	second.must("run.subscribe", map[string]any{"runId": id}, nil)
	started := []message{second.next()}
	for started[len(started)-1].Params.Event != "trial_start" {
		started = append(started, second.next())
	}
	require.NoError(t, first.cmd.Process.Kill())
	list := slices.Concat(started, second.follow(id))
	consecutive(t, 1, list)
	last := list[len(list)-1].Params
	require.Equal(t, "interrupted", last.Status)
	require.Contains(t, last.Error, "Eval execution failed")

	var s struct{ Status, Error string }
	second.must("run.status", map[string]any{"runId": id}, &s)
	require.Equal(t, "interrupted", s.Status)
	require.Equal(t, last.Error, s.Error)
	second.must("run.cancel", map[string]any{"runId": id}, &s)
	require.Equal(t, "interrupted", s.Status)

	// The first event after the end had the number of the end.
	second.must("run.resume", map[string]any{"runId": id}, nil)
	resumed := second.next()
	require.Equal(t, "run_resumed", resumed.Params.Event)
	require.Equal(t, last.Seq+1, resumed.Params.Seq)
	second.cancel(id)
	second.must("run.subscribe", map[string]any{"runId": id}, nil)
	consecutive(t, 1, second.follow(id))
	require.NoError(t, second.w.Close())
	require.Empty(t, second.rest())
	require.Equal(t, 0, second.code())
}

// Any daemon of the same user can cancel a run. The daemon that executes it reports the end to
// its client, and the other daemon's client can query it.
func TestCancelRunOfAnotherDaemon(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	first, second := spawn(t, state, "stdio"), spawn(t, state, "stdio")
	id := first.start(map[string]any{"path": suite(t, slow)})
	first.wait("trial_start")
	var s struct{ RunID, Status string }
	second.must("run.status", map[string]any{"runId": id}, &s)
	require.Equal(t, "running", s.Status)
	second.must("run.cancel", map[string]any{"runId": id}, &s)
	require.Equal(t, "cancelled", s.Status)
	require.Equal(t, id, s.RunID)
	list := first.follow(id)
	require.Equal(t, "cancelled", list[len(list)-1].Params.Status)
	second.must("run.subscribe", map[string]any{"runId": id, "fromSeq": list[0].Params.Seq}, nil)
	again := second.follow(id)
	require.Equal(t, list, again)

	id = first.start(map[string]any{"path": suite(t, many(1, 1000, 1)+"  - {id: last, prompt: x}\n"), "executor": "mock"})
	second.must("run.cancel", map[string]any{"runId": id, "finishRunning": true}, &s)
	require.Contains(t, []string{"running", "cancelled", "completed"}, s.Status)
	first.follow(id)
}

// The error names a process that cannot answer.
func TestCancelRunOfAHaltedDaemon(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	first, second := spawn(t, state, "stdio"), spawn(t, state, "stdio")
	id := first.start(map[string]any{"path": suite(t, slow)})
	first.wait("trial_start")
	proctest.Halt(t, first.cmd.Process)
	fault := second.call("run.cancel", map[string]any{"runId": id}).Error
	require.NotNil(t, fault)
	require.EqualValues(t, -32002, fault.Code)
	require.Contains(t, fault.Message, fmt.Sprintf("process %d", first.cmd.Process.Pid))
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGCONT))
	list := first.follow(id) // the process now handles the earlier request
	require.Equal(t, "cancelled", list[len(list)-1].Params.Status)
}

// A signal ends the daemon on a socket and its runs.
func TestSocketDaemon(t *testing.T) {
	t.Parallel()
	path := filepath.Join(proctest.ShortDir(t), "s")
	p := spawn(t, t.TempDir(), path)
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "listening") }, patience, 5*time.Millisecond)
	c := dial(t, &net.UnixAddr{Name: path, Net: "unix"})
	id := c.start(map[string]any{"path": suite(t, slow)})
	c.wait("trial_start")

	other := spawn(t, t.TempDir(), path) // another daemon cannot take over the socket
	require.Equal(t, 2, other.code())
	require.Contains(t, other.stderr.String(), "another server")

	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	list := c.follow(id)
	require.Equal(t, "cancelled", list[len(list)-1].Params.Status)
	require.Empty(t, c.rest())
	require.Equal(t, 130, p.code())
	require.NoFileExists(t, path)
}

// A signal ended an idle daemon of listeners with the exit code of an interrupted run, which
// service managers report as a failure.
func TestSignalEndsIdleDaemon(t *testing.T) {
	t.Parallel()
	p := spawn(t, t.TempDir(), filepath.Join(proctest.ShortDir(t), "s"))
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "listening") }, patience, 5*time.Millisecond)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.code(), p.stderr.String())
}

// The client of the protocol document treats the line after a request as its reply, and then
// reads up to eval.complete.
func TestNextLineIsTheReply(t *testing.T) {
	t.Parallel()
	p := spawn(t, t.TempDir(), "stdio")
	for range 3 {
		p.request("eval.run", map[string]any{"path": suite(t, short), "executor": "mock"})
		m := p.next()
		var r struct{ RunID string }
		require.NoError(t, json.Unmarshal(m.Result, &r))
		require.NotEmpty(t, r.RunID)
		p.follow(r.RunID)
	}
	require.NoError(t, p.w.Close())
	require.Equal(t, 0, p.code())
}
