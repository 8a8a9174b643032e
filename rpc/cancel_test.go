package rpc_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trees returns a suite of 50 concurrent trials, each a tree of five sleepers: children and
// grandchildren, two that ignore SIGTERM, one in its own session. The mark is the duration of
// their sleep, which identifies them.
func trees(t testing.TB, mark string) string {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("needs /proc to find processes")
	}
	session := "setsid"
	if _, err := exec.LookPath(session); err != nil {
		session = "nohup"
	}
	return suite(t, `
name: trees
config:
  executor: command
  sandbox: off
  command:
    - sh
    - -c
    - |
      sleep `+mark+` &
      (sleep `+mark+` & wait) &
      sh -c 'trap "" TERM HUP INT; sleep `+mark+` & wait' &
      (trap "" TERM; `+session+` sh -c 'trap "" TERM HUP; sleep `+mark+` & wait' </dev/null >/dev/null 2>&1 &)
      sleep `+mark+`
  trials_per_task: 50
  parallel: true
  workers: 50
tasks:
  - id: a
    prompt: sleep
    graders:
      - {type: text, name: any, config: {regex_match: ["."]}}
`)
}

const treesSleepers = 50 * 5

// newMark returns a unique duration for sleep, in seconds.
func newMark() string {
	return fmt.Sprintf("%d.%d", 600+os.Getpid()%100, time.Now().UnixNano()%1_000_000_000)
}

// Cancelling ends every process of a run, however many there are, wherever they are and whatever
// signals they ignore. It must take at most a second; the limit here is higher, because the
// machine may be busy.
func TestCancelProcessTrees(t *testing.T) {
	t.Parallel()
	mark := newMark()
	p := spawn(t, t.TempDir(), "stdio")
	id := p.start(map[string]any{"path": trees(t, mark)})
	require.Eventually(t, func() bool { return sleepers(mark) == treesSleepers }, patience, 20*time.Millisecond)
	started := time.Now()
	list := p.cancel(id)
	reported := time.Since(started)
	require.Eventually(t, func() bool { return sleepers(mark) == 0 }, patience, 5*time.Millisecond)
	took := time.Since(started)
	t.Logf("eval.complete after %v, all processes gone after %v", reported, took)
	require.Less(t, took, 5*time.Second)
	last := list[len(list)-1]
	require.Equal(t, "eval.complete", last.Method)
	require.Equal(t, "cancelled", last.Params.Status)
	require.NoError(t, p.w.Close())
	require.Empty(t, p.rest())
	require.Equal(t, 0, p.code())
}

// BenchmarkCancel measures the time from run.cancel to the end of all processes of 50 trials,
// each a tree of five that ignore signals, and to eval.complete.
func BenchmarkCancel(b *testing.B) {
	var gone, reported time.Duration
	for b.Loop() {
		mark := newMark()
		p := spawn(b, b.TempDir(), "stdio")
		id := p.start(map[string]any{"path": trees(b, mark)})
		require.Eventually(b, func() bool { return sleepers(mark) == treesSleepers }, patience, 10*time.Millisecond)
		started := time.Now()
		p.cancel(id)
		reported += time.Since(started)
		require.Eventually(b, func() bool { return sleepers(mark) == 0 }, patience, time.Millisecond)
		gone += time.Since(started)
	}
	b.ReportMetric(gone.Seconds()*1000/float64(b.N), "ms-gone")
	b.ReportMetric(reported.Seconds()*1000/float64(b.N), "ms-noticed")
	b.ReportMetric(0, "ns/op")
}
