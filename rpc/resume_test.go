package rpc_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/record"
)

// erring returns a suite whose trials all end in error, so that there is always something to
// resume.
func erring(tasks int) string {
	text := "name: erring\nconfig: {executor: command, sandbox: off, command: exit 7, retry_errors: 0}\ntasks:\n"
	for i := range tasks {
		text += "  - {id: t" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ", prompt: x}\n"
	}
	return text
}

// An active run cannot be resumed, and the error names its process. A resumed run belongs to the
// client that resumed it, and ends with that client.
func TestResumeOwns(t *testing.T) {
	t.Parallel()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	server := newServer(t, rpc.Options{Runner: r})
	first := stdio(t, server)
	id := first.start(map[string]any{"path": suite(t, "name: slow\nconfig: {mock: {latency_ms: 1000000}}\ntasks: [{id: a, prompt: x}]\n")})
	busy := first.call("run.resume", map[string]any{"runId": id})
	require.EqualValues(t, wire.CodeRunFailed, busy.Error.Code)
	require.EqualValues(t, os.Getpid(), busy.Error.Data["pid"])
	require.Equal(t, id, busy.Error.Data["runId"])
	first.cancel(id)

	second := stdio(t, server)
	var started struct{ RunID, Status string }
	second.must("run.resume", map[string]any{"runId": id}, &started)
	require.Equal(t, id, started.RunID)
	require.Equal(t, "running", started.Status)
	require.Equal(t, "run_resumed", second.next().Params.Event)
	run := r.Live(id)
	require.NotNil(t, run)
	require.NoError(t, first.w.Close())
	first.rest()
	require.NoError(t, first.exit())
	require.NotNil(t, r.Live(id), "the run belongs to the second client")
	second.request("exit", nil) // without shutdown
	second.rest()
	require.ErrorIs(t, second.exit(), rpc.ErrExit)
	<-run.Done()
	p, err := run.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCancelled, p.Status)
}

// A client that resumes a run before it has read all events of the previous session still gets
// every event exactly once, and one eval.complete for each session whose end it received.
func TestResumeWhileReceiving(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		r, err := runner.New(runner.Options{StateDir: t.TempDir()})
		require.NoError(t, err)
		c := connect(t, newServer(t, rpc.Options{Runner: r}))
		id := c.start(map[string]any{"path": suite(t, erring(80))})
		if run := r.Live(id); run != nil {
			<-run.Done() // nothing is read meanwhile
		}
		var seen []message
		const times = 2
		for n := range times {
			asked := c.request("run.resume", map[string]any{"runId": id})
			require.Eventually(t, func() bool { // still nothing is read
				h, err := r.Catalog().Run(id)
				if err != nil || h.Record().Resumed != n+1 {
					return false
				}
				p, err := h.Progress()
				return err == nil && p.Status == record.StatusCompleted && r.Live(id) == nil
			}, patience, 5*time.Millisecond)
			m, list := c.collect(asked)
			require.Nil(t, m.Error)
			seen = append(seen, list...)
		}
		resumed := func(m message) bool { return m.Params.Event == "run_resumed" }
		count := func() (n int) {
			for _, m := range seen {
				if resumed(m) {
					n++
				}
			}
			return n
		}
		for count() < times || seen[len(seen)-1].Method != "eval.complete" {
			seen = append(seen, c.next())
		}
		consecutive(t, 1, seen)
		require.Equal(t, times, count())
		require.LessOrEqual(t, len(slices.DeleteFunc(seen, func(m message) bool { return m.Method != "eval.complete" })), times+1)
	})
}
