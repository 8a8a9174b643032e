//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"waza/cmd/waza/exit"
	"waza/runner/record"
)

// The tests of this file interrupt a run over and over, by SIGKILL or a full disk, and resume it
// until it is done. Then each trial counts once, no finished trial was repeated, all totals
// equal those of an undisturbed run, and only its record is left.
//
// They are small in make test and large in make test-crash, which sets WAZA_TEST_CRASH; the
// value ci selects a medium size. WAZA_TEST_SEED repeats the events of a printed seed.

// crashSize is the size of a test.
type crashSize struct{ tasks, trials, kills, fills int }

func crashSizeOf() crashSize {
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		return crashSize{tasks: 10, trials: 20, kills: 5, fills: 3}
	case "ci":
		return crashSize{tasks: 20, trials: 30, kills: 15, fills: 8}
	}
	return crashSize{tasks: 40, trials: 50, kills: 50, fills: 20}
}

// crash is a suite that runs and is disturbed.
type crash struct {
	*testing.T
	state string // the state directory
	waza  string // the program
	size  crashSize
	rand  *rand.Rand
	dir   string
	suite string
	log   string // a line for each execution of a trial
	mark  string // in the environment of every process
	env   []string
	id    string
	// finished maps the trials with a recorded end after a session to the number of their
	// executions until then.
	finished map[string]int
}

func newCrash(t *testing.T, state string) *crash {
	c := &crash{T: t, state: state, waza: wazaPath(t), size: crashSizeOf(), dir: t.TempDir(), finished: map[string]int{}}
	c.rand = seeded(t)
	c.log = filepath.Join(t.TempDir(), "log")
	c.mark = fmt.Sprintf("WAZA_TEST_MARK=%d-%s", os.Getpid(), t.Name())
	c.env = append(environment(t), c.mark, "WAZA_STATE="+state, "EXECUTED="+c.log)
	c.suite = filepath.Join(c.dir, "eval.yaml")
	require.NoError(t, os.WriteFile(c.suite, []byte(c.suiteText()), 0o600))
	return c
}

// suiteText returns a suite whose trials note each execution and leave a file in the workspace.
// One in ten leaves a process in its own session. The outcome depends only on the trial.
func (c *crash) suiteText() string {
	var b strings.Builder
	fmt.Fprintf(&b, `name: crash
config:
  executor: command
  sandbox: off
  command: |
    echo "$WAZA_TASK_ID/$WAZA_TRIAL" >> "$EXECUTED"
    cd "$WAZA_WORKSPACE_DIR" && echo "$WAZA_TRIAL" > left || exit 75 # the disk is full
    case $WAZA_TRIAL in *0) setsid sleep 1000 </dev/null >/dev/null 2>&1 & esac
    case $WAZA_TRIAL in *7) echo poor;; *) echo fine;; esac
  trials_per_task: %d
  parallel: true
  workers: 4
  group_by: tags
graders:
  - {name: says_fine, type: text, config: {contains: [fine]}}
  - {name: left, type: file, config: {must_exist: [left]}}
metrics: [{name: task_completion, threshold: 0.5}, {name: says_fine, threshold: 0.5}]
tasks:
`, c.size.trials)
	for i := range c.size.tasks {
		fmt.Fprintf(&b, "  - {id: t%d, prompt: x, pass_threshold: 0.%d, tags: [g%d]}\n", i, 85+i%2*10, i%3)
	}
	return b.String()
}

// command returns a call of waza that prints to out.
func (c *crash) command(args ...string) (cmd *exec.Cmd, out *bytes.Buffer) {
	cmd, out = exec.Command(c.waza, args...), &bytes.Buffer{}
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env, c.dir, out, out
	return cmd, out
}

// args returns the arguments of the next session.
func (c *crash) args() []string {
	if c.id == "" {
		return []string{"run", c.suite}
	}
	return []string{"run", "--resume", c.id}
}

// runDir returns the directory of the run, or "" if it does not exist. A process that was killed
// while making the directory has left no record in it.
func (c *crash) runDir() string {
	records, err := filepath.Glob(filepath.Join(c.state, "runs", "*", "run.json"))
	require.NoError(c, err)
	if len(records) == 0 {
		return ""
	}
	require.Len(c, records, 1, "it is one run all the time")
	return filepath.Dir(records[0])
}

// undisturbed returns the result of the suite without interruptions.
func (c *crash) undisturbed() map[string]any {
	c.Helper()
	cmd, out := c.command("run", "--json", c.suite)
	cmd.Env = append(cmd.Env, "WAZA_STATE="+c.TempDir(), "EXECUTED=/dev/null")
	cmd.Stderr = io.Discard
	_ = cmd.Run()
	require.Equal(c, exit.Failed, cmd.ProcessState.ExitCode(), "%s", out)
	return c.decode(out.Bytes())
}

// decode parses a result and removes members that differ between runs.
func (c *crash) decode(result []byte) map[string]any {
	c.Helper()
	var doc map[string]any
	require.NoError(c, json.Unmarshal(result, &doc))
	forget(doc)
	return doc
}

// timely are the members that differ between runs.
var timely = []string{"runId", "startedAt", "endedAt", "durationMs", "executorMs", "startupMs", "time", "transcript", "workspace", "conditions", "noise"}

func forget(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range timely {
			delete(v, name)
		}
		for _, m := range v {
			forget(m)
		}
	case []any:
		for _, m := range v {
			forget(m)
		}
	}
}

// executed counts the executions of each trial.
func (c *crash) executed() map[string]int {
	c.Helper()
	b, err := os.ReadFile(c.log)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(c, err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(b)) {
		times[strings.TrimSpace(line)]++
	}
	return times
}

// sessionOver notes the trials that had finished at the end of a session. No process of the
// session may be left that could add one.
func (c *crash) sessionOver() {
	c.Helper()
	dir := c.runDir()
	if dir == "" {
		return
	}
	c.id = filepath.Base(dir)
	f, err := os.Open(filepath.Join(dir, "journal.jsonl"))
	require.NoError(c, err)
	defer f.Close()
	times := c.executed()
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // the last line can be incomplete
		}
		var e record.Event
		require.NoError(c, json.Unmarshal(line, &e))
		name := fmt.Sprintf("%s/%d", e.TaskID, e.TrialNum)
		if _, known := c.finished[name]; !known && e.Type == record.TrialComplete && (e.Verdict == record.Passed || e.Verdict == record.Failed) {
			c.finished[name] = times[name]
		}
	}
}

// marked lists the remaining processes.
func (c *crash) marked() (pids []int) { return markedWith(c.T, c.mark) }

// markedWith lists the processes with a text in their environment.
func markedWith(t *testing.T, mark string) (pids []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range names {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !bytes.Contains(env, []byte(mark+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

// kill ends a session like an operating system that is out of memory. Sometimes it also kills
// the guard, so that the next session has to clean up.
func (c *crash) kill(cmd *exec.Cmd) {
	c.Helper()
	if c.rand.IntN(3) == 0 {
		for _, pid := range c.marked() {
			if cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(cmdline), "waza\x00guard\x00") {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	require.NoError(c, cmd.Process.Kill())
	_ = cmd.Wait()
}

// withoutErrors removes attempts with errors from the trials of a result, because a full disk
// can also disturb an agent, and the trial is then repeated.
func withoutErrors(result map[string]any) {
	for _, task := range result["tasks"].([]any) {
		for _, t := range task.(map[string]any)["trials"].([]any) {
			trial := t.(map[string]any)
			attempts, _ := trial["attempts"].([]any)
			attempts = slices.DeleteFunc(attempts, func(a any) bool { return a.(map[string]any)["verdict"] == "error" })
			if len(attempts) == 0 {
				delete(trial, "attempts")
			} else {
				trial["attempts"] = attempts
			}
		}
	}
}

// done checks the final state.
func (c *crash) done(want map[string]any) {
	c.Helper()
	cmd, out := c.command("runs", "show", "--json", c.id)
	require.NoError(c, cmd.Run(), "%s", out)
	got := c.decode(out.Bytes())
	withoutErrors(got)
	require.Empty(c, cmp.Diff(want["summary"], got["summary"]))
	require.Empty(c, cmp.Diff(want, got))
	summary := got["summary"].(map[string]any)["trials"].(map[string]any)
	require.EqualValues(c, c.size.tasks*c.size.trials, summary["total"])

	times := c.executed()
	require.Len(c, times, c.size.tasks*c.size.trials)
	for name, before := range c.finished {
		require.Equal(c, before, times[name], "%s had finished and was done again", name)
	}
	left, err := os.ReadDir(filepath.Join(c.state, "work"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(c, err)
	}
	require.Empty(c, left, "workspaces")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); len(c.marked()) > 0; <-tick.C {
		require.True(c, time.Now().Before(deadline), "processes are left: %v", c.marked())
	}
	c.replay()
}

// replay checks that a follower of the whole run gets each event once.
func (c *crash) replay() {
	c.Helper()
	cmd, out := c.command("runs", "follow", "--events", c.id)
	_ = cmd.Run()
	seq := int64(0)
	ends := 0
	for line := range bytes.Lines(out.Bytes()) {
		var e record.Event
		if json.Unmarshal(line, &e) != nil || e.Seq == 0 {
			continue // stderr
		}
		seq++
		require.Equal(c, seq, e.Seq)
		if e.Type == record.End {
			ends++
		}
	}
	require.Equal(c, 1, ends)
}

// A run that is killed at random moments and resumed each time ends like an undisturbed run.
func TestCrashKilled(t *testing.T) {
	t.Parallel()
	c := newCrash(t, t.TempDir())
	want := c.undisturbed()
	for kills := range c.size.kills {
		cmd, out := c.command(c.args()...)
		require.NoError(c, cmd.Start())
		c.await(c.size.kills - kills)
		c.kill(cmd)
		require.Equal(c, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "it ended before: %s", out)
		c.sessionOver()
	}
	t.Logf("%d of %d trials had finished before the last session", len(c.finished), c.size.tasks*c.size.trials)
	c.lastSession()
	c.done(want)
}

// await waits for the moment of the next of the remaining kills. Sometimes this is during the
// start of the session, otherwise after some of the remaining trials, but never after all.
func (c *crash) await(kills int) {
	c.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	left := c.size.tasks*c.size.trials - len(c.finished)
	trials := c.rand.IntN(max(1, 2*left/(kills+2)))
	if c.rand.IntN(5) == 0 {
		trials = 0
	}
	const line = len("t1/10\n")
	logged := func() int64 {
		info, err := os.Stat(c.log)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	begin, deadline := logged(), time.Now().Add(patience)
	for logged() < begin+int64(trials*line) {
		require.True(c, time.Now().Before(deadline), "the session does nothing")
		<-tick.C
	}
	for range c.rand.IntN(50) { // milliseconds, within which sessions start and trials end
		<-tick.C
	}
}

// lastSession resumes the run to its end.
func (c *crash) lastSession() {
	c.Helper()
	cmd, out := c.command(c.args()...)
	_ = cmd.Run()
	require.Equal(c, exit.Failed, cmd.ProcessState.ExitCode(), "%s", out)
	c.sessionOver()
}

// A run whose disk fills up repeatedly, and that is resumed when there is room again, ends like
// an undisturbed run.
func TestCrashFullDisk(t *testing.T) {
	t.Parallel()
	c := newCrash(t, smallDisk(t, 64<<20))
	want := c.undisturbed()
	for range c.size.fills {
		empty := c.fill(c.rand.Int64N(100 << 10))
		cmd, out := c.command(c.args()...)
		require.NoError(c, cmd.Start())
		within(t, "waza does not end when the disk is full", func() { _ = cmd.Wait() })
		require.Equal(c, exit.Error, cmd.ProcessState.ExitCode(), "%s", out)
		require.NotContains(c, out.String(), "panic")
		require.NotContains(c, out.String(), "goroutine ")
		empty()
		c.sessionOver()
	}
	t.Logf("%d of %d trials had finished before the last session", len(c.finished), c.size.tasks*c.size.trials)
	c.lastSession()
	c.done(want)
}

// smallDisk mounts a file system in memory, of that many bytes.
func smallDisk(t *testing.T, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		t.Skipf("no small disk can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves about that many bytes of the disk free, until empty is called.
func (c *crash) fill(free int64) (empty func()) {
	c.Helper()
	var st unix.Statfs_t
	require.NoError(c, unix.Statfs(c.state, &st))
	f, err := os.Create(filepath.Join(c.state, "ballast"))
	require.NoError(c, err)
	defer f.Close()
	_, err = io.CopyN(f, zeros{}, max(0, int64(st.Bavail)*st.Bsize-free))
	require.NoError(c, err)
	return func() { require.NoError(c, os.Remove(f.Name())) }
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
