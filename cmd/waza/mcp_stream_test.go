//go:build unix

package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Whenever the server ends during a run, no process of the run outlives it.
func TestMCPEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, status string
		code         int
		end          func(t *testing.T, d *daemon)
	}{
		{"input closed", "cancelled", 0, func(t *testing.T, d *daemon) { require.NoError(t, d.in.Close()) }},
		{"client gone", "cancelled", 1, func(t *testing.T, d *daemon) { require.NoError(t, d.stdout.Close()) }},
		{"terminated", "cancelled", 130, func(t *testing.T, d *daemon) { require.NoError(t, d.cmd.Process.Signal(unix.SIGTERM)) }},
		{"killed", "interrupted", -1, func(t *testing.T, d *daemon) { require.NoError(t, d.cmd.Process.Kill()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const n = 5
			suite, pids := sleepers(t, n)
			d := startRawMCP(t, filepath.Dir(suite))
			d.initialize(t)
			d.send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"waza_run","arguments":{"path":"."},`+
				`"_meta":{"progressToken":1}}}`)
			ids := sleeping(t, pids, n)
			c.end(t, d.daemon)
			require.Equal(t, c.code, d.exitCode(t))
			requireAllGone(t, ids)
			out, err := exec.CommandContext(t.Context(), "env", "WAZA_STATE="+d.state, "waza", "runs", "--json").Output()
			require.NoError(t, err)
			var list struct{ Runs []struct{ Status string } }
			require.NoError(t, json.Unmarshal(out, &list))
			require.Len(t, list.Runs, 1)
			require.Equal(t, c.status, list.Runs[0].Status)
		})
	}
}

// rawMCP is a server whose client writes lines directly.
type rawMCP struct {
	*daemon
	state string
}

func startRawMCP(t *testing.T, dir string) *rawMCP {
	t.Helper()
	r := &rawMCP{state: t.TempDir()}
	cmd := exec.Command("waza", "mcp", "--dir", dir)
	cmd.Env = append(os.Environ(), "WAZA_STATE="+r.state)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	wait := sync.OnceValue(cmd.Wait)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = wait()
	})
	require.NoError(t, out.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	r.daemon = &daemon{cmd: cmd, wait: wait, in: in, out: bufio.NewReaderSize(out, 1<<20), stdout: out}
	return r
}

func (d *rawMCP) initialize(t *testing.T) {
	t.Helper()
	d.send(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05",`+
		`"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	require.Contains(t, d.line(t), `"protocolVersion":"2024-11-05"`)
	d.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (d *rawMCP) line(t *testing.T) string {
	t.Helper()
	line, err := d.out.ReadString('\n')
	require.NoError(t, err)
	return line
}

// Invalid lines get an error, and the server answers the next message.
func TestMCPBadInput(t *testing.T) {
	t.Parallel()
	d := startRawMCP(t, t.TempDir())
	d.initialize(t)
	for _, c := range []struct{ line, says string }{
		{`no JSON`, `"code":-32700`},
		{`{"jsonrpc":"2.0","id":2,"method":"ping"} {}`, `"code":-32700`},
		{"\x00\xff", `"code":-32700`},
		{`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `batches`},
		{`[]`, `batches`},
		{`{}`, `"code":-32600`},
		{`5`, `"code":-32600`},
		{`null`, `"code":-32600`},
		{`{"jsonrpc":"1.0","id":2,"method":"ping"}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":2,"method":"` + strings.Repeat("x", 2<<20) + `"}`, `longer than 1048576 bytes`},
		{strings.Repeat("[", 1<<20-10), `"code":-32700`},
		{`{"jsonrpc":"2.0","id":2,"method":"nothing"}`, `"code":-32601`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, `"error"`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":[]}`, `"error"`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"waza_eval_get","arguments":[]}}`, `"isError":true`},
		{`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"` + strings.Repeat("%", 1000) + `"}}`, `"error"`},
		{`{"jsonrpc":"2.0","id":2,"method":"completion/complete","params":{}}`, `"id":2`},
	} {
		d.send(t, "%s", c.line)
		require.Contains(t, d.line(t), c.says, "%.100s", c.line)
	}
	for _, line := range []string{
		"", "  \r", `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","method":"nothing"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}`,
	} {
		d.send(t, "%s", line) // these require no answer
	}
	d.send(t, "  %s \r", `{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	require.Contains(t, d.line(t), `"id":"last"`)
	require.NoError(t, d.in.Close())
	rest, err := io.ReadAll(d.out)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, 0, d.exitCode(t))
}

// The server answers pending requests when the input ends, and rejects requests beyond the
// limit.
func TestMCPFlood(t *testing.T) {
	t.Parallel()
	const n = 3
	suite, pids := sleepers(t, n)
	d := startRawMCP(t, filepath.Dir(suite))
	d.initialize(t)
	d.send(t, `{"jsonrpc":"2.0","id":"run","method":"tools/call","params":{"name":"waza_run","arguments":{"path":".","wait_seconds":1000}}}`)
	ids := sleeping(t, pids, n)
	d.send(t, `{"jsonrpc":"2.0","id":"run","method":"ping"}`)
	require.Contains(t, d.line(t), "has no reply yet")
	for i := range 100 {
		d.send(t, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"waza_run_result","arguments":{"wait_seconds":1000}}}`, i)
	}
	refused := 0
	for range 37 {
		if line := d.line(t); strings.Contains(line, `"code":-32005`) {
			refused++
		}
	}
	require.Equal(t, 37, refused, "64 requests have no reply, of which one runs")
	require.NoError(t, d.in.Close())
	answered := 0
	for {
		line, err := d.out.ReadString('\n')
		if err != nil {
			break
		}
		require.Contains(t, line, `"result"`)
		answered++
	}
	require.Equal(t, 64, answered)
	require.Equal(t, 0, d.exitCode(t))
	requireAllGone(t, ids)
}
