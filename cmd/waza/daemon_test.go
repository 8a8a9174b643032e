//go:build unix

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// daemon is a `waza jsonrpc` process with its own state directory. errors receives the lines of
// its stderr.
type daemon struct {
	cmd    *exec.Cmd
	wait   func() error // can be called more than once
	in     io.WriteCloser
	out    *bufio.Reader
	stdout io.ReadCloser
	errors *bufio.Reader
}

func startDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	return startDaemonWith(t, nil, args...)
}

// startDaemonWith starts a daemon with additional environment variables.
func startDaemonWith(t *testing.T, env []string, args ...string) *daemon {
	t.Helper()
	cmd := exec.Command("waza", append([]string{"jsonrpc"}, args...)...)
	cmd.Env = append(append(os.Environ(), "WAZA_STATE="+t.TempDir()), env...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	wait := sync.OnceValue(cmd.Wait)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = wait()
	})
	for _, r := range []io.ReadCloser{out, errs} {
		require.NoError(t, r.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	}
	return &daemon{cmd: cmd, wait: wait, in: in, out: bufio.NewReaderSize(out, 1<<20), stdout: out, errors: bufio.NewReader(errs)}
}

func (d *daemon) send(t *testing.T, format string, args ...any) {
	t.Helper()
	_, err := fmt.Fprintf(d.in, format+"\n", args...)
	require.NoError(t, err)
}

// message is a reply or a notification.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		RunID  string `json:"runId"`
		Event  string `json:"event"`
		Status string `json:"status"`
		Seq    int64  `json:"seq"`
	} `json:"params"`
}

func readMessage(t *testing.T, r *bufio.Reader) message {
	t.Helper()
	line, err := r.ReadBytes('\n')
	require.NoError(t, err)
	var m message
	require.NoError(t, json.Unmarshal(line, &m), "%s", line)
	return m
}

// sleepers returns a suite of n concurrent command trials. Each starts a tree of sleeping
// processes that write their ids to the file pids.
func sleepers(t *testing.T, n int) (suite, pids string) {
	t.Helper()
	dir := t.TempDir()
	suite, pids = filepath.Join(dir, "eval.yaml"), filepath.Join(dir, "pids")
	require.NoError(t, os.Mkdir(pids, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent.sh"), []byte(`
touch "$PIDS/$$"
sh -c 'touch "$PIDS/$$"; exec sleep 1000' &
if command -v setsid >/dev/null; then setsid sh -c 'touch "$PIDS/$$"; exec sleep 1000' & else touch "$PIDS/none-$$"; fi
wait
`), 0o600))
	require.NoError(t, os.WriteFile(suite, fmt.Appendf(nil, `
name: sleepers
config:
  executor: command
  sandbox: off
  command: [sh, agent.sh]
  env: {PIDS: %q}
  parallel: true
  workers: %d
  trials_per_task: %d
tasks: [{id: sleep, prompt: x}]
`, pids, n, n), 0o600))
	return suite, pids
}

// sleeping waits until n process trees sleep, and returns the ids of their processes.
func sleeping(t *testing.T, pids string, n int) []int {
	t.Helper()
	var ids []int
	require.Eventually(t, func() bool {
		entries, err := os.ReadDir(pids)
		require.NoError(t, err)
		ids = nil
		for _, e := range entries {
			if id, err := strconv.Atoi(e.Name()); err == nil {
				ids = append(ids, id)
			}
		}
		return len(entries) == 3*n
	}, patience, 10*time.Millisecond, "the agents did not start")
	return ids
}

func requireAllGone(t *testing.T, ids []int) {
	t.Helper()
	for _, id := range ids {
		require.Eventually(t, func() bool {
			if unix.Kill(id, 0) != nil {
				return true
			}
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
			return err == nil && strings.Contains(string(stat), ") Z ")
		}, patience, 5*time.Millisecond, "process %d is left", id)
	}
}

// exitCode waits for a process to end by itself.
func (d *daemon) exitCode(t *testing.T) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		_ = d.wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("waza did not exit")
	}
	return d.cmd.ProcessState.ExitCode()
}

// With an empty input, the daemon ends without work.
func TestDaemonEmptyInput(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	require.NoError(t, d.in.Close())
	rest, err := io.ReadAll(d.out)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, 0, d.exitCode(t))
}

// When a client is killed and both pipes close, the daemon leaves nothing behind.
func TestDaemonClientKilled(t *testing.T) {
	t.Parallel()
	const n = 50
	suite, pids := sleepers(t, n)
	d := startDaemon(t)
	d.send(t, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":%q}}`, suite)
	require.Nil(t, readMessage(t, d.out).Error)
	ids := sleeping(t, pids, n)
	require.NoError(t, d.in.Close())
	require.NoError(t, d.stdout.Close())
	require.NotEqual(t, 0, d.exitCode(t))
	requireAllGone(t, ids)
}

// A daemon that is killed leaves nothing behind either.
func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	const n = 10
	suite, pids := sleepers(t, n)
	d := startDaemon(t)
	d.send(t, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":%q}}`, suite)
	ids := sleeping(t, pids, n)
	require.NoError(t, d.cmd.Process.Kill())
	requireAllGone(t, ids)
}

// After SIGTERM, the daemon cancels runs, notifies the client, cleans up and exits.
func TestDaemonTerminated(t *testing.T) {
	t.Parallel()
	const n = 5
	suite, pids := sleepers(t, n)
	d := startDaemon(t)
	d.send(t, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":%q}}`, suite)
	ids := sleeping(t, pids, n)
	require.NoError(t, d.cmd.Process.Signal(unix.SIGTERM))
	last := message{}
	for line, err := d.out.ReadBytes('\n'); err == nil; line, err = d.out.ReadBytes('\n') {
		last = message{}
		require.NoError(t, json.Unmarshal(line, &last))
	}
	require.Equal(t, "eval.complete", last.Method)
	require.Equal(t, "cancelled", last.Params.Status)
	d.exitCode(t)
	requireAllGone(t, ids)
}

// Agents inherited the variable of --token-env. An agent that printed its environment put the
// token into the records.
func TestDaemonTokenNotInherited(t *testing.T) {
	t.Parallel()
	const token = "this-is-not-for-agents"
	dir := t.TempDir()
	suite, socket := filepath.Join(dir, "eval.yaml"), filepath.Join(dir, "s")
	require.NoError(t, os.WriteFile(suite, []byte(`
name: prints
config: {executor: command, sandbox: off, command: "echo seen=${WAZA_TEST_TOKEN-nothing}"}
tasks: [{id: one, prompt: x, graders: [{type: text, config: {contains: ["seen=nothing"]}}]}]
`), 0o600))
	d := startDaemonWith(t, []string{"WAZA_TEST_TOKEN=" + token}, "--socket", socket, "--token-env", "WAZA_TEST_TOKEN")
	_, err := d.errors.ReadString('\n') // the line that it listens
	require.NoError(t, err)
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"token":%q}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"eval.run","params":{"path":%q}}`+"\n", token, suite)
	require.NoError(t, err)
	in := bufio.NewReaderSize(conn, 1<<20)
	require.Nil(t, readMessage(t, in).Error)
	require.Nil(t, readMessage(t, in).Error)
	for {
		m := readMessage(t, in)
		if m.Params.Event == "task_complete" {
			require.Equal(t, "passed", m.Params.Status, "the agent sees the token")
		}
		if m.Method == "eval.complete" {
			return
		}
	}
}

// run.cancel is answered, the process trees are gone, and eval.complete reports it.
func TestDaemonCancel(t *testing.T) {
	t.Parallel()
	const n = 10
	suite, pids := sleepers(t, n)
	d := startDaemon(t)
	d.send(t, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":%q}}`, suite)
	var reply struct {
		RunID string `json:"runId"`
	}
	require.NoError(t, json.Unmarshal(readMessage(t, d.out).Result, &reply))
	ids := sleeping(t, pids, n)
	d.send(t, `{"jsonrpc":"2.0","id":2,"method":"run.cancel","params":{"runId":%q}}`, reply.RunID)
	for answered, reported := false, false; !answered || !reported; {
		m := readMessage(t, d.out)
		if string(m.ID) == "2" {
			require.JSONEq(t, fmt.Sprintf(`{"runId":%q,"status":"cancelled"}`, reply.RunID), string(m.Result))
			answered = true
		}
		if m.Method == "eval.complete" {
			require.Equal(t, "cancelled", m.Params.Status)
			reported = true
		}
	}
	requireAllGone(t, ids)
}

// The Python client in the protocol document works. The test replaces only the path, and uses
// the executor of this machine.
func TestDaemonDocumentedPythonClient(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "protocols", "waza-jsonrpc.md"))
	if err != nil {
		t.Skip("the protocol document is not beside this checkout")
	}
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllSubmatch(doc, -1)
	require.Len(t, blocks, 1)
	hello, err := filepath.Abs(filepath.Join("..", "..", "testdata", "suites", "hello", "eval.yaml"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, executor := range []string{"copilot-sdk", "mock"} {
		client := strings.ReplaceAll(string(blocks[0][1]), "/path/to/eval.yaml", hello)
		client = strings.ReplaceAll(client, "copilot-sdk", executor)
		cmd := exec.CommandContext(ctx, python, "-c", client)
		cmd.Env = append(os.Environ(), "WAZA_STATE="+t.TempDir(), "LC_ALL=C") // shims of python3 warn about locales that the machine lacks
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, `(?s)^Started run: \S+\nRun complete: \{.*'summary'.*\}\n$`, string(out))
		if executor == "mock" {
			require.Contains(t, string(out), "'passRate': 1")
		}
	}
}

// The daemon answers a piped request and reports its run to the end, on stdin and through a
// half-closed TCP connection, here with nc if it is installed.
func TestDaemonPipedRequest(t *testing.T) {
	t.Parallel()
	request := `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"../../testdata/suites/hello/eval.yaml"}}` + "\n"

	d := startDaemon(t)
	d.send(t, "%s", request)
	require.NoError(t, d.in.Close())
	requireWholeRun(t, d.out)
	require.Equal(t, 0, d.exitCode(t))

	addr := startDaemon(t, "--tcp", "127.0.0.1:0").address(t)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	requireWholeRun(t, bufio.NewReader(conn))

	if nc, err := exec.LookPath("nc"); err == nil {
		host, port, _ := net.SplitHostPort(addr)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, nc, "-N", host, port)
		cmd.Stdin = strings.NewReader(request)
		out, err := cmd.Output()
		require.NoError(t, err)
		requireWholeRun(t, bufio.NewReader(strings.NewReader(string(out))))
	}
}

// requireWholeRun reads a reply, then all notifications of its run in order. The last one before
// the end of the stream is eval.complete.
func requireWholeRun(t *testing.T, r *bufio.Reader) {
	t.Helper()
	require.JSONEq(t, "1", string(readMessage(t, r).ID))
	for seq := int64(1); ; seq++ {
		m := readMessage(t, r)
		require.Equal(t, seq, m.Params.Seq)
		if m.Method == "eval.complete" {
			break
		}
	}
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, rest)
}

var listensAt = regexp.MustCompile(`address="?([0-9.]+:[0-9]+)`)

// address returns the TCP address that the daemon logs.
func (d *daemon) address(t *testing.T) string {
	t.Helper()
	line, err := d.errors.ReadString('\n')
	require.NoError(t, err)
	found := listensAt.FindStringSubmatch(line)
	require.NotNil(t, found, line)
	return found[1]
}

// The log did not warn that every process of the user could run programs through the daemon.
func TestDaemonSaysWhoCanConnect(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	for want, args := range map[string][]string{
		`level=WARN msg=listening .* clients="every process of this user, and each can run programs as this user; ` +
			`--token-file FILE or --token-env NAME requires a token"`: {"--tcp", "localhost:0"},
		`level=INFO msg=listening .* clients="clients that present the token"`: {
			"--tcp", "localhost:0", "--token-file", token,
		},
		`level=INFO msg=listening network=unix .* clients="every process of this user"`: {
			"--socket", filepath.Join(t.TempDir(), "s"),
		},
	} {
		d := startDaemon(t, args...)
		line, err := d.errors.ReadString('\n')
		require.NoError(t, err)
		require.Regexp(t, want, line)
		require.NoError(t, d.cmd.Process.Signal(unix.SIGTERM))
		require.Zero(t, d.exitCode(t), "it is idle")
	}
}
