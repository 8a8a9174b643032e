package rpc_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/record/recordtest"
)

// many returns a suite of tasks whose trials run in parallel.
func many(tasks, trials, workers int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: many\nconfig:\n  trials_per_task: %d\n  parallel: true\n  workers: %d\ntasks:\n", trials, workers)
	for i := range tasks {
		fmt.Fprintf(&b, "  - id: t%d\n    prompt: say yes\n    graders:\n      - {type: text, name: any, config: {contains: [\"yes\"]}}\n", i)
	}
	return b.String()
}

// The reply to eval.run comes before every notification of its run, however many runs are
// started at once.
func TestReplyComesFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		c := connect(t, newServer(t, rpc.Options{}))
		path := suite(t, short)
		const runs = 20
		for range runs {
			c.request("eval.run", map[string]any{"path": path})
		}
		started, ended := map[string]bool{}, 0
		for ended < runs {
			m := c.next()
			switch {
			case m.ID != nil:
				require.Nil(t, m.Error)
				var r struct{ RunID string }
				require.NoError(t, json.Unmarshal(m.Result, &r))
				require.False(t, started[r.RunID], "run ids are unique")
				started[r.RunID] = true
			case m.Method == "eval.complete":
				ended++
				fallthrough
			default:
				require.True(t, started[m.Params.RunID], "%+v", m)
			}
		}
	})
}

// In a batch, too, notifications wait for the replies.
func TestReplyOfBatchComesFirst(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	path, _ := json.Marshal(suite(t, short))
	req := `{"jsonrpc":"2.0","id":%d,"method":"eval.run","params":{"path":` + string(path) + `}}`
	c.send(fmt.Sprintf("["+req+","+req+"]\n", 1, 2))
	require.NoError(t, c.w.Close())
	lines := c.rest()
	require.True(t, strings.HasPrefix(lines[0], "["), lines[0])
	completes := 0
	for _, line := range lines[1:] {
		completes += strings.Count(line, `"eval.complete"`)
	}
	require.Equal(t, 2, completes)
	require.NoError(t, c.exit())
}

// Notifications are numbered without gaps, those of a task are in order, and eval.complete comes
// once and last.
func TestNotifications(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		c := connect(t, newServer(t, rpc.Options{}))
		id := c.start(map[string]any{"path": suite(t, many(8, 5, 4))})
		require.NoError(t, c.w.Close())
		var list []message
		for _, line := range c.rest() {
			var m message
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			require.Equal(t, id, m.Params.RunID)
			list = append(list, m)
		}
		consecutive(t, 1, list)
		last := list[len(list)-1]
		require.Equal(t, "eval.complete", last.Method)
		require.EqualValues(t, 8, last.Params.Summary["total"])
		require.EqualValues(t, 8, last.Params.Summary["passed"])
		require.EqualValues(t, 0, last.Params.Summary["failed"])
		require.EqualValues(t, 1, last.Params.Summary["passRate"])
		require.Equal(t, "run_start", list[0].Params.Event)
		require.Equal(t, "run_complete", list[len(list)-2].Params.Event)
		stories := map[string][]message{}
		for _, m := range list[:len(list)-1] {
			require.NotEqual(t, "eval.complete", m.Method)
			if m.Params.TaskID != "" && m.Method == "eval.progress" {
				stories[m.Params.TaskID] = append(stories[m.Params.TaskID], m)
			}
		}
		require.Len(t, stories, 8)
		for _, story := range stories {
			inOrder(t, story, 5)
		}
	})
}

// inOrder checks the events of one task.
func inOrder(t *testing.T, story []message, trials int) {
	t.Helper()
	require.Len(t, story, 2*trials+2)
	require.Equal(t, "task_start", story[0].Params.Event)
	end := story[len(story)-1].Params
	require.Equal(t, "task_complete", end.Event)
	require.Equal(t, "passed", end.Status)
	begun, done := map[int]bool{}, map[int]bool{}
	for _, m := range story[1 : len(story)-1] {
		p := m.Params
		require.Equal(t, trials, p.TotalTrials)
		switch p.Event {
		case "trial_start":
			require.False(t, begun[p.TrialNum])
			begun[p.TrialNum] = true
		case "trial_complete":
			require.True(t, begun[p.TrialNum] && !done[p.TrialNum])
			done[p.TrialNum] = true
			require.NotNil(t, p.Score)
			require.NotNil(t, p.DurationMS)
		default:
			t.Errorf("unexpected %s", p.Event)
		}
	}
	require.Len(t, done, trials)
}

func TestCancelRun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, connect transport) {
		c := connect(t, newServer(t, rpc.Options{}))
		id := c.start(map[string]any{"path": suite(t, slow)})
		c.wait("trial_start")
		var s struct {
			RunID, Status string
			Trials        record.Counts
			Seq           int64
			Result, Error any
		}
		c.must("run.status", map[string]any{"runId": id}, &s)
		require.Equal(t, "running", s.Status)
		require.Positive(t, s.Seq)
		require.Positive(t, s.Trials.Total)
		require.Zero(t, s.Trials.Cancelled)

		s.Seq = 0
		list := c.cancel(id)
		last := list[len(list)-1].Params
		require.Equal(t, "cancelled", last.Status)
		require.Equal(t, "Eval execution cancelled", last.Error)
		require.Nil(t, last.Summary)

		c.must("run.status", map[string]any{"runId": id}, &s)
		require.Equal(t, "cancelled", s.Status)
		require.Nil(t, s.Result)
		require.Zero(t, s.Seq, "no event follows the last one")
		require.Equal(t, record.Counts{Total: s.Trials.Total, Cancelled: s.Trials.Total}, s.Trials)
		c.must("run.cancel", map[string]any{"runId": id}, &s) // again
		require.Equal(t, "cancelled", s.Status)
		require.NoError(t, c.w.Close())
		require.Empty(t, c.rest(), "eval.complete is the last message")
	})
}

func TestFailedRun(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, short+`
hooks:
  before_run:
    - {command: exit 7, error_on_fail: true}
`)})
	list := c.follow(id)
	consecutive(t, 1, list)
	last := list[len(list)-1].Params
	require.Equal(t, "failed", last.Status)
	require.Regexp(t, `^Eval execution failed: .+`, last.Error)
	require.Nil(t, last.Summary)
	var s struct {
		Status string
		Result any
		Error  string
	}
	c.must("run.status", map[string]any{"runId": id}, &s)
	require.Equal(t, "failed", s.Status)
	require.Nil(t, s.Result)
	require.Equal(t, last.Error, s.Error)
}

// Every other client gets event n and all later ones once, from an active run and from one that
// is over.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	addr := listen(t, s)
	owner, other := dial(t, addr), dial(t, addr)
	id := owner.start(map[string]any{"path": suite(t, slow)})
	owner.wait("trial_start")

	reply, before := other.collect(other.request("run.subscribe", map[string]any{"runId": id, "fromSeq": 2}))
	require.Empty(t, before)
	require.JSONEq(t, `{"runId":"`+id+`","fromSeq":2}`, string(reply.Result))
	owner.must("run.cancel", map[string]any{"run_id": id}, nil)
	got := other.follow(id)
	consecutive(t, 2, got)

	other.must("run.subscribe", map[string]any{"runId": id}, nil)
	again := other.follow(id)
	consecutive(t, 1, again)
	require.Len(t, again, len(got)+1)

	// After the last event, nothing follows.
	other.must("run.subscribe", map[string]any{"runId": id, "fromSeq": len(again) + 1}, nil)
	require.NoError(t, other.w.Close())
	require.Empty(t, other.rest())
}

// A connection that already receives a run gets nothing twice if it subscribes again, neither
// from the current event nor from an earlier one.
func TestSubscribeAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	addr := listen(t, s)
	owner, other := dial(t, addr), dial(t, addr)
	id := owner.start(map[string]any{"path": suite(t, slow)})
	first := owner.wait("run_start")
	require.EqualValues(t, 1, first.Params.Seq)
	var r struct{ FromSeq int64 }
	reply, between := owner.collect(owner.request("run.subscribe", map[string]any{"runId": id, "fromSeq": 1}))
	require.NoError(t, json.Unmarshal(reply.Result, &r))
	require.Greater(t, r.FromSeq, int64(1))

	other.must("run.subscribe", map[string]any{"runId": id, "fromSeq": 3}, nil)
	late := []message{other.next()}
	for _, from := range []int{2, 1} { // an earlier event, twice
		_, more := other.collect(other.request("run.subscribe", map[string]any{"runId": id, "fromSeq": from}))
		late = append(late, more...)
		late = append(late, other.next())
	}

	consecutive(t, 2, append(between, owner.cancel(id)...))
	late = append(late, other.follow(id)...)
	seen := map[int64]int{}
	for _, m := range late {
		seen[m.Params.Seq]++
	}
	for seq := range int64(len(late)) {
		require.Equal(t, 1, seen[seq+1], "event %d", seq+1)
	}
	require.Equal(t, "eval.complete", late[len(late)-1].Method)
}

func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	c := tcp(t, newServer(t, rpc.Options{}))
	id := c.start(map[string]any{"path": suite(t, slow)})
	c.wait("trial_start")
	var r struct{ Subscribed bool }
	c.must("run.unsubscribe", map[string]any{"runId": id}, &r)
	require.True(t, r.Subscribed)
	_, between := c.collect(c.request("run.cancel", map[string]any{"runId": id}))
	require.Empty(t, between)
	c.must("run.unsubscribe", map[string]any{"runId": id}, &r)
	require.False(t, r.Subscribed)
	// All events are sent again.
	_, between = c.collect(c.request("run.subscribe", map[string]any{"runId": id, "fromSeq": 1}))
	require.Empty(t, between)
	consecutive(t, 1, c.follow(id))
}

// A run that the client unsubscribed from still belongs to it: the daemon ends after the run.
func TestEndWaitsForUnsubscribed(t *testing.T) {
	t.Parallel()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	c := stdio(t, newServer(t, rpc.Options{Runner: r}))
	id := c.start(map[string]any{"path": suite(t, many(20, 20, 2))})
	c.must("run.unsubscribe", map[string]any{"runId": id}, nil)
	require.NoError(t, c.w.Close())
	require.NoError(t, c.exit())
	h, err := r.Catalog().Run(id)
	require.NoError(t, err)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCompleted, p.Status)
}

func TestRunList(t *testing.T) {
	t.Parallel()
	c := stdio(t, newServer(t, rpc.Options{}))
	var list struct {
		Runs []struct{ RunID, Status string }
	}
	c.must("run.list", nil, &list)
	require.Equal(t, []struct{ RunID, Status string }{}, list.Runs)
	path := suite(t, short)
	over := c.start(map[string]any{"path": path})
	c.follow(over)
	on := c.start(map[string]any{"path": suite(t, slow)})
	c.must("run.list", nil, &list)
	require.Len(t, list.Runs, 2)
	require.Equal(t, on, list.Runs[0].RunID)
	require.Equal(t, "running", list.Runs[0].Status)
	c.must("run.list", map[string]any{"status": "completed"}, &list)
	require.Len(t, list.Runs, 1)
	require.Equal(t, over, list.Runs[0].RunID)
	c.must("run.list", map[string]any{"path": path, "limit": 1}, &list)
	require.Len(t, list.Runs, 1)
	c.must("run.cancel", map[string]any{"runId": on}, nil)
	c.must("run.list", map[string]any{"status": "cancelled"}, &list)
	require.Len(t, list.Runs, 1)
	require.Equal(t, on, list.Runs[0].RunID)
}

// A server that starts later lists earlier runs.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := func() string {
		r, err := runner.New(runner.Options{StateDir: dir})
		require.NoError(t, err)
		c := stdio(t, newServer(t, rpc.Options{Runner: r}))
		id := c.start(map[string]any{"path": suite(t, short)})
		c.follow(id)
		return id
	}()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	c := stdio(t, newServer(t, rpc.Options{Runner: r}))
	var s struct {
		Status string
		Result map[string]any
	}
	c.must("run.status", map[string]any{"runId": before}, &s)
	require.Equal(t, "completed", s.Status)
	require.EqualValues(t, 2, s.Result["total"])
	c.must("run.subscribe", map[string]any{"runId": before}, nil)
	consecutive(t, 1, c.follow(before))
	var res recordtest.Result
	c.must("run.result", map[string]any{"runId": before}, &res)
	require.Len(t, res.Tasks, 2)
	require.Equal(t, "Mock response for: say yes", res.Trial(t, "a", 2).Output)
	require.Equal(t, record.Failed, res.Trial(t, "b", 1).Verdict)
	require.Len(t, res.Trial(t, "b", 1).Graders, 1)
}

// A client that never reads neither slows a run nor makes the server store the unread messages.
func TestClientThatNeverReads(t *testing.T) {
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	c := stdio(t, newServer(t, rpc.Options{Runner: r}))
	before := heap()
	id := c.start(map[string]any{"path": suite(t, many(20, 1000, 16))})
	status := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"run.result","params":{"runId":%q}}`+"\n", id)
	flood := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 2000 && err == nil; i++ {
			_, err = c.w.Write([]byte(status))
		}
		flood <- err
	}()
	run := r.Live(id)
	if run != nil {
		<-run.Done()
	}
	require.Less(t, heap()-before, int64(64<<20))
	c.r.Close()
	require.ErrorIs(t, c.exit(), rpc.ErrClientGone)
	<-flood
}

// heap returns the number of heap bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
