package rpc_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner/proc/proctest"
)

// bulky is a suite whose result has about 20 MB.
const bulky = `
name: bulky
config:
  trials_per_task: 6
  executor: command
  sandbox: off
  command: "head -c 3400000 /dev/zero | tr '\\0' x"
tasks: [{id: a, prompt: x}]
`

// A large result is the same in its own reply, in a batch and with headers. Other requests are
// served while it is unread. It is larger than the buffers of a connection.
func TestLargeResult(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	addr := listen(t, s)
	c := dial(t, addr)
	id := c.start(map[string]any{"path": suite(t, strings.Replace(bulky, "trials_per_task: 6", "trials_per_task: 3", 1))})
	c.follow(id)
	alone := c.call("run.result", map[string]any{"runId": id})
	require.Nil(t, alone.Error)
	require.Greater(t, len(alone.Result), 10_000_000)
	require.True(t, json.Valid(alone.Result))
	want := strings.ReplaceAll(string(alone.Result), " ", "")

	request := `{"jsonrpc":"2.0","id":7,"method":"run.result","params":{"runId":"` + id + `"}}`
	c.send("[" + strings.TrimSpace(ping("8")) + "," + request + "]\n")
	line, ok := c.line()
	require.True(t, ok)
	var batch []message
	require.NoError(t, json.Unmarshal([]byte(line), &batch))
	require.Len(t, batch, 2)
	require.True(t, want == strings.ReplaceAll(string(batch[1].Result), " ", ""))

	silent := dial(t, addr)
	silent.send(request + "\n")
	_, err := silent.scan.ReadByte() // the reply is being sent
	require.NoError(t, err)
	c.must("ping", nil, nil)
}

// 50 clients that requested a result and did not read it cost 14.9 GB.
func TestCrashSilentClients(t *testing.T) {
	t.Parallel()
	if os.Getenv("WAZA_TEST_CRASH") == "" || runtime.GOOS != "linux" {
		t.Skip("takes a minute; set WAZA_TEST_CRASH=1, on Linux")
	}
	path := filepath.Join(proctest.ShortDir(t), "s")
	p := spawn(t, t.TempDir(), path)
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "listening") }, patience, 5*time.Millisecond)
	addr := &net.UnixAddr{Name: path, Net: "unix"}
	c := dial(t, addr)
	id := c.start(map[string]any{"path": suite(t, strings.Replace(bulky, "trials_per_task: 6", "trials_per_task: 8", 1))})
	c.follow(id)
	_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "clear_refs"), []byte("5"), 0o600) // resets the peak
	before := residentBytes(t, p.cmd.Process.Pid)
	served, busy := 0, 0
	for range 50 {
		silent := dial(t, addr)
		silent.request("run.result", map[string]any{"runId": id})
		head := make([]byte, 40)
		_, err := silent.r.Read(head)
		require.NoError(t, err)
		if strings.Contains(string(head), `"error"`) {
			busy++
		} else {
			served++
		}
	}
	after := residentBytes(t, p.cmd.Process.Pid)
	t.Logf("%d results of more than 50 MB unread, %d requests refused: resident %d MB before, %d MB after",
		served, busy, before>>20, after>>20)
	require.Positive(t, served)
	require.Positive(t, busy)
	require.Less(t, after-before, int64(256<<20))
	c.must("ping", nil, nil)
}

// residentBytes returns the peak memory use of a process.
func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	require.NoError(t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	require.NoError(t, err)
	return kilobytes << 10
}
