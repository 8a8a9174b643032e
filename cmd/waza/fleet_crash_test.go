//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/fleet"
	"waza/runner/fleet/fleettest"
	"waza/runner/record"
)

// chaosSize is the size of a test: trials of the executor mock with a maximum latency in
// milliseconds, trials of programs, and kills of workers, owners and servers.
type chaosSize struct{ mock, programs, latency, workers, owners, servers int }

func chaosSizeOf() chaosSize {
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
		return chaosSize{mock: 240, programs: 40, latency: 400, workers: 3, owners: 1, servers: 1}
	case "ci":
		return chaosSize{mock: 1200, programs: 200, latency: 1500, workers: 7, owners: 4, servers: 4}
	}
	return chaosSize{mock: 4600, programs: 400, latency: 1500, workers: 28, owners: 16, servers: 16}
}

func (s chaosSize) trials() int { return s.mock + s.programs }

const (
	chaosWorkers = 6
	chaosSlots   = 4 // of each worker
	chaosTasks   = 4 // of each run
)

// chaos is a fleet whose parts are killed: a cluster of servers, workers that share only the
// servers, and owners of two runs.
type chaos struct {
	*testing.T
	size    chaosSize
	rand    *rand.Rand
	waza    string
	mark    string // in the environment of every process except the servers
	servers *fleettest.Servers
	address string
	workers []*chaosProcess
	owners  []*chaosProcess
	// starting is closed when the last killed server takes part again.
	starting chan struct{}
}

// chaosProcess is a worker or an owner, which restarts after a kill.
type chaosProcess struct {
	state string
	env   []string
	log   *syncBuffer
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has
}

// Killing workers, owners and servers of a fleet at random moments loses no trial, counts none
// twice, and leaves nothing behind.
func TestCrashFleet(t *testing.T) {
	t.Parallel()
	if testing.Short() && os.Getenv("WAZA_TEST_CRASH") == "" {
		t.Skip("starts a cluster and waits for its elections")
	}
	c := newChaos(t)
	for _, w := range c.workers {
		c.start(w, "worker", "--fleet", c.address, "--slots", strconv.Itoa(chaosSlots))
	}
	c.own(c.owners[0], fmt.Sprintf(`name: mock
config:
  executor: mock
  mock: {latency_ms: {min: 5, max: %d}, seed: 1, replies: [{trials: [7], output: poor}, {output: fine, files: [{path: left, content: x}]}]}
  trials_per_task: %d
`, c.size.latency, c.size.mock/chaosTasks))
	c.own(c.owners[1], fmt.Sprintf(`name: programs
config:
  executor: command
  sandbox: off
  command: |
    echo "$WAZA_TRIAL" > left
    sleep 1000 </dev/null >/dev/null 2>&1 &
    setsid sleep 1000 </dev/null >/dev/null 2>&1 &
    sleep 0.$((WAZA_TRIAL %% 4))
    case $WAZA_TRIAL in 7) echo poor;; *) echo fine;; esac
  trials_per_task: %d
`, c.size.programs/chaosTasks))
	c.until("both runs have started", func() bool { return c.owners[0].run(t) != "" && c.owners[1].run(t) != "" })

	var kinds []string
	for kind, n := range map[string]int{"worker": c.size.workers, "owner": c.size.owners, "server": c.size.servers} {
		for range n {
			kinds = append(kinds, kind)
		}
	}
	c.rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for len(kinds) > 0 {
		c.await(len(kinds))
		switch c.next(&kinds) {
		case "worker":
			w := c.workers[c.rand.IntN(len(c.workers))]
			c.kill(w)
			c.start(w, w.cmd.Args[1:]...)
		case "owner":
			c.killOwner()
		default:
			c.killServer()
		}
	}
	t.Logf("%d of %d trials had ended after all kills", c.ended(), c.size.trials())
	<-c.starting
	c.over()
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{T: t, size: chaosSizeOf(), waza: wazaPath(t), servers: fleettest.Cluster(t), starting: make(chan struct{})}
	close(c.starting)
	c.rand = seeded(t)
	c.mark = fmt.Sprintf("WAZA_TEST_MARK=%d-%s", os.Getpid(), t.Name())
	c.address = c.servers.URL() + "?team=chaos&replicas=3&lost=4s"
	for i := range chaosWorkers + 2 {
		p := &chaosProcess{state: t.TempDir(), log: &syncBuffer{}}
		p.env = append(environment(t), c.mark, "WAZA_STATE="+p.state)
		if i < chaosWorkers {
			c.workers = append(c.workers, p)
		} else {
			c.owners = append(c.owners, p)
		}
	}
	t.Cleanup(func() {
		for _, p := range append(c.workers, c.owners...) {
			if p.cmd != nil {
				_ = p.cmd.Process.Kill()
				<-p.ended
			}
		}
		if t.Failed() {
			for i, p := range append(c.workers, c.owners...) {
				t.Logf("process %d:\n%s", i, p.log)
			}
		}
	})
	return c
}

func (c *chaos) start(p *chaosProcess, args ...string) {
	c.Helper()
	p.cmd = exec.Command(c.waza, args...)
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.env, p.state, p.log, p.log
	require.NoError(c, p.cmd.Start())
	ended, cmd := make(chan struct{}), p.cmd
	p.ended = ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
}

func (c *chaos) kill(p *chaosProcess) {
	c.Helper()
	select {
	case <-p.ended:
		require.Fail(c, "it ended by itself", "%v: %s", p.cmd.Args, p.log)
	default:
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// own starts the run of a suite with one failing trial in each task.
func (c *chaos) own(p *chaosProcess, suite string) {
	c.Helper()
	path := filepath.Join(c.TempDir(), "eval.yaml")
	suite += "graders:\n  - {name: fine, type: text, config: {contains: [fine]}}\n  - {name: left, type: file, " +
		"config: {must_exist: [left]}}\ntasks:\n"
	for i := range chaosTasks {
		suite += fmt.Sprintf("  - {id: t%d, prompt: x}\n", i)
	}
	require.NoError(c, os.WriteFile(path, []byte(suite), 0o600))
	c.start(p, "run", "--fleet", c.address, path)
}

// killOwner kills the owner of an active run, if there is one, and resumes the run.
func (c *chaos) killOwner() {
	c.Helper()
	from := c.rand.IntN(len(c.owners))
	for i := range c.owners {
		p := c.owners[(from+i)%len(c.owners)]
		_ = p.cmd.Process.Kill()
		<-p.ended
		if p.cmd.ProcessState.Exited() {
			continue
		}
		c.start(p, "run", "--resume", p.run(c.T))
		return
	}
	c.Log("no run was left")
}

// next removes the next kind of process to kill from a list. While a server is down, it prefers
// other kinds.
func (c *chaos) next(kinds *[]string) string {
	i := 0
	select {
	case <-c.starting:
	default:
		i = max(0, slices.IndexFunc(*kinds, func(kind string) bool { return kind != "server" }))
	}
	kind := (*kinds)[i]
	*kinds = slices.Delete(*kinds, i, i+1)
	return kind
}

// killServer kills a server when all are running, and restarts it.
func (c *chaos) killServer() {
	c.Helper()
	<-c.starting
	i, ready := c.rand.IntN(c.servers.Len()), make(chan struct{})
	c.starting = ready
	c.servers.Kill(i)
	go func() {
		defer close(ready)
		c.servers.Start(i)
	}()
}

// await waits for the moment of the next of the remaining kills: after some of the remaining
// trials, but never after all.
func (c *chaos) await(kills int) {
	c.Helper()
	ended := c.ended()
	trials := c.rand.IntN(max(1, 2*(c.size.trials()-ended)/(kills+2)))
	c.until("trials end", func() bool { return c.ended() >= ended+trials })
}

// until polls for a state of other processes.
func (c *chaos) until(what string, holds func() bool) {
	c.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		require.True(c, time.Now().Before(deadline), "not in time: %s; %d of %d trials have ended", what, c.ended(), c.size.trials())
	}
}

// run returns the id of an owner's run; empty before the run exists.
func (p *chaosProcess) run(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "runs", "*", "journal.jsonl"))
	require.NoError(t, err)
	if len(files) == 0 {
		return ""
	}
	require.Len(t, files, 1, "it is one run all the time")
	return filepath.Base(filepath.Dir(files[0]))
}

// ends returns the recorded ends of trials, by task and number.
func (p *chaosProcess) ends(t *testing.T) map[string][]record.Verdict {
	t.Helper()
	ends := map[string][]record.Verdict{}
	f, err := os.Open(filepath.Join(p.state, "runs", p.run(t), "journal.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return ends
	}
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return ends // ignore an incomplete last line
		}
		var e record.Event
		require.NoError(t, json.Unmarshal(line, &e))
		if e.Type == record.TrialComplete {
			name := fmt.Sprintf("%s/%d", e.TaskID, e.TrialNum)
			ends[name] = append(ends[name], e.Verdict)
		}
	}
}

// ended counts the trials that have ended.
func (c *chaos) ended() (n int) {
	c.Helper()
	for _, p := range c.owners {
		n += len(p.ends(c.T))
	}
	return n
}

// over waits for the ends of the runs, drains the workers, and checks the final state.
func (c *chaos) over() {
	c.Helper()
	for i, p := range c.owners {
		within(c.T, "the end of a run", func() { <-p.ended })
		code := exit.Failed
		if c.whole(p, []int{c.size.mock, c.size.programs}[i]/chaosTasks) > 0 {
			code = exit.Error
		}
		require.Equal(c, code, p.cmd.ProcessState.ExitCode(), "%s", p.log)
	}
	var drained sync.WaitGroup
	for _, p := range c.workers {
		require.NoError(c, p.cmd.Process.Signal(syscall.SIGTERM))
		drained.Go(func() { <-p.ended })
	}
	within(c.T, "the end of the workers", drained.Wait)
	for _, p := range c.workers {
		require.Zero(c, p.cmd.ProcessState.ExitCode(), "%s", p.log)
		left, err := filepath.Glob(filepath.Join(p.state, "worker", "work", "*"))
		require.NoError(c, err)
		require.Empty(c, left, "workspaces")
	}
	c.until("no process is left", func() bool { return len(markedWith(c.T, c.mark)) == 0 })
	c.empty()
}

// whole checks that each trial of a run counts once, and ends once unless it was in error when its
// owner was killed. It returns the number of trials with an
// error because they cost three workers.
func (c *chaos) whole(p *chaosProcess, trials int) (costly int) {
	c.Helper()
	b, err := os.ReadFile(filepath.Join(p.state, "runs", p.run(c.T), "result.json"))
	require.NoError(c, err)
	var got struct {
		Status record.Status
		Tasks  []struct {
			ID     string
			Trials []record.Trial
		}
		Summary struct {
			Trials struct{ Total, Passed, Failed, Errors int }
		}
	}
	require.NoError(c, json.Unmarshal(b, &got))
	require.Equal(c, record.StatusCompleted, got.Status)
	require.Len(c, got.Tasks, chaosTasks)
	ends := p.ends(c.T)
	for _, task := range got.Tasks {
		require.Len(c, task.Trials, trials, task.ID)
		for i, trial := range task.Trials {
			name := fmt.Sprintf("%s/%d", task.ID, i+1)
			require.Equal(c, i+1, trial.TrialNum)
			require.NotEmpty(c, ends[name], name)
			last := len(ends[name]) - 1
			require.Equal(c, trial.Verdict, ends[name][last], "%s: %s", name, trial.Error)
			for _, before := range ends[name][:last] {
				require.Equal(c, record.Errored, before, name) // a resumed run does such a trial again
			}
			require.Empty(c, trial.Attempts, name)
			want := record.Passed
			if trial.TrialNum == 7 {
				want = record.Failed
			}
			if trial.Verdict == record.Errored && strings.Contains(trial.Error, "3 workers were lost while executing the trial") {
				costly++ // documented: three kills can hit the same trial
				continue
			}
			require.Equal(c, want, trial.Verdict, "%s: %s", name, trial.Error)
		}
	}
	require.LessOrEqual(c, costly, 2, "trials that cost three workers")
	require.Len(c, ends, chaosTasks*trials)
	require.Equal(c, chaosTasks*trials, got.Summary.Trials.Total)
	if costly == 0 {
		require.Equal(c, chaosTasks, got.Summary.Trials.Failed)
		require.Equal(c, chaosTasks*(trials-1), got.Summary.Trials.Passed)
	}
	return costly
}

// empty checks that the team's streams are empty, except for results after the ends of runs: a
// trial can have run twice.
func (c *chaos) empty() {
	c.Helper()
	conn, err := nats.Connect(c.servers.URL())
	require.NoError(c, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(c, err)
	names := fleet.NamesOf("chaos")
	why := error(nil)
	defer func() {
		if c.Failed() {
			c.Log("not empty: ", why)
		}
	}()
	c.until("the streams are empty", func() bool {
		why = sweep(c.Context(), js, names)
		return why == nil
	})
}

// sweep removes messages of runs that are over. It returns an error if others are left.
func sweep(ctx context.Context, js jetstream.JetStream, names fleet.Names) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	place, err := fleet.Find(ctx, js, names)
	if err != nil {
		return err
	}
	if err := place.Sweep(ctx); err != nil {
		return err
	}
	for _, name := range []string{names.Orders, names.Results} {
		s, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		if n := s.CachedInfo().State.Msgs; n > 0 {
			cards, err := fleet.Cards[fleet.RunCard](ctx, place.State, fleet.RunKey(""))
			return fmt.Errorf("%s has %d messages, and the runs are %+v (%v)", name, n, cards, err)
		}
	}
	return nil
}
