package fleet_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/fleettest"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/worker"
	"waza/runner/grader/builtin"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// site is the fleet of a test: a server, and the shared settings of owners and workers.
type site struct {
	*testing.T
	url    string
	lost   string // silence after which a worker is lost; long in tests that count executions
	agents *executor.Registry

	mu     sync.Mutex // guards owners
	owners []*engine.Conn
}

// lose disconnects all owners.
func (s *site) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.owners {
		c.NATS().Close()
	}
}

func newSite(t *testing.T, does runnertest.Agent) *site {
	return &site{T: t, url: fleettest.Server(t), agents: registry(does)}
}

func registry(does runnertest.Agent) *executor.Registry {
	return executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: "agent"},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return does, nil },
	})
}

func (s *site) address(parameters string) string {
	address := s.url + "?lost=" + cmp.Or(s.lost, "1m")
	if parameters != "" {
		address += "&" + parameters
	}
	return address
}

func (s *site) connect(ctx context.Context, address string) (*engine.Conn, error) {
	a, err := engine.Parse(address)
	if err != nil {
		return nil, err
	}
	return engine.Connect(ctx, a, engine.Options{Log: slog.New(slog.DiscardHandler)})
}

// owner returns a runner whose trials the fleet executes.
func (s *site) owner(state string) *runner.Runner {
	s.Helper()
	return s.ownerOf(runner.Options{StateDir: state})
}

// ownerOf is owner for a runner with more options.
func (s *site) ownerOf(o runner.Options) *runner.Runner {
	s.Helper()
	log := slog.New(slog.DiscardHandler)
	connect := func(ctx context.Context, address engine.Address) (*engine.Conn, error) {
		c, err := engine.Connect(ctx, address, engine.Options{Log: log})
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.owners = append(s.owners, c)
		}
		return c, err
	}
	o.Executors = s.agents
	o.Fleet = fleet.New(fleet.Options{Connect: connect, Check: 2 * time.Second, Log: log})
	r, err := runner.New(o)
	require.NoError(s, err)
	s.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// offers returns the offer of this machine, with the executor of the test.
func offers(labels ...string) *offer.Offer {
	o := offer.Of(labels, os.Environ())
	o.Executors = append(o.Executors, "agent")
	return o
}

// hand is a worker of a test.
type hand struct {
	*worker.Worker
	id   string
	conn *engine.Conn
	end  context.CancelFunc
	done chan error // receives the result of Run
}

// work starts a worker with some slots. It ends with the test.
func (s *site) work(slots int, parameters string, change func(*worker.Options)) *hand {
	s.Helper()
	conn, err := s.connect(s.Context(), s.address(parameters))
	require.NoError(s, err)
	o := worker.Options{
		ID: worker.NewID(), Version: "test", Slots: slots, Offer: offers(), Conn: conn, Dir: s.TempDir(),
		Executors: s.agents, Graders: builtin.Graders, Limits: &provider.Limits{}, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	ctx, end := context.WithCancel(context.Background())
	h := &hand{worker.New(o), o.ID, conn, end, make(chan error, 1)}
	var over sync.WaitGroup
	over.Go(func() { h.done <- h.Run(ctx) })
	s.Cleanup(func() {
		end()
		over.Wait()
		conn.Close()
	})
	return h
}

// awaitDone waits until the worker has sent n results.
func (h *hand) awaitDone(t *testing.T, n int64) {
	require.Eventually(t, func() bool { return h.Status().Done == n && h.Status().Busy == 0 }, time.Minute, 5*time.Millisecond)
}

const twoTasks = `
-- eval.yaml --
name: away
config: {executor: agent, trials_per_task: %d}
tasks:
  - {id: a, name: A, inputs: {prompt: "do a {{.Trial}}"}, expected: {output_contains: [done]}}
  - {id: b, name: B, inputs: {prompt: do b}, expected: {output_contains: [done]}}
`

func (s *site) request(parameters string) record.Request {
	return record.Request{Fleet: s.address(parameters), Workers: 40}
}

func says(context.Context, *executor.Trial) (string, error) { return "done", nil }

// All workers execute the trials of a run, each trial once. The record equals that of a local
// run.
func TestWorkersDoRun(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	s := newSite(t, func(_ context.Context, t *executor.Trial) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[fmt.Sprintf("%s-%d", t.Task.ID, t.Num)]++
		return "done " + t.Prompt, nil
	})
	one, two := s.work(3, "", nil), s.work(3, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 100), s.request(""))
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 200, res.Summary.Trials.Passed, "%v", events[len(events)-1].Error)
	require.Len(t, asked, 200)
	for name, n := range asked {
		require.Equal(t, 1, n, name)
	}
	started, ended := map[string]int{}, 0
	for _, e := range events {
		switch e.Type {
		case record.TrialStart:
			started[fmt.Sprintf("%s-%d", e.TaskID, e.TrialNum)]++
		case record.TrialComplete:
			ended++
		}
	}
	require.Len(t, started, 200)
	require.Equal(t, 200, ended)
	require.Positive(t, one.Status().Done)
	require.Positive(t, two.Status().Done)
	require.EqualValues(t, 200, one.Status().Done+two.Status().Done)
}

// Workers run the setup of tasks, with the files of the suite that it names.
func TestWorkersSetUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(_ context.Context, t *executor.Trial) (string, error) {
		dir, err := t.Dir()
		if err != nil {
			return "", err
		}
		made, err := os.ReadFile(filepath.Join(dir, "made"))
		return string(made), err
	})
	s.work(1, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), `
-- eval.yaml --
name: setup
tasks: [{id: a, inputs: {prompt: x, files: [{path: in, content: given}], setup: ['cat in >made', 'sh "$WAZA_SUITE_DIR/lib.sh" >>made']}}]
config: {executor: agent}
-- lib.sh --
echo " here"
`, s.request(""))
	<-live.Done()
	trial := runnertest.ResultOf(t, live).Trial(t, "a", 1)
	require.Equal(t, record.Passed, trial.Verdict, trial.Error)
	require.Equal(t, "given here\n", trial.Output)
}

// The trials of a lost worker are executed by a different worker, and count once.
func TestLostWorker(t *testing.T) {
	t.Parallel()
	stuck, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	var tries atomic.Int64
	s := newSite(t, func(ctx context.Context, t *executor.Trial) (string, error) {
		if t.Task.ID == "a" && tries.Add(1) == 1 {
			close(stuck)
			<-hold
		}
		return "done", nil
	})
	s.lost = "1s"
	lost := s.work(1, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 1), s.request(""))
	<-stuck
	lost.conn.NATS().Close() // as if its machine were disconnected
	s.work(1, "", nil)
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 2, res.Summary.Trials.Passed)
	require.Equal(t, 2, res.Summary.Trials.Total)
	require.Contains(t, texts(events), "a worker was lost")
	require.EqualValues(t, 2, tries.Load())
}

// An order for which three workers were lost ends in error.
func TestDeadlyOrder(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	defer close(hold)
	took := make(chan struct{}, 10)
	s := newSite(t, func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Task.ID == "b" {
			return "done", nil
		}
		took <- struct{}{}
		<-hold
		return "", errors.New("too late")
	})
	s.lost = "1s"
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 1), s.request(""))
	for range fleet.Deadly {
		w := s.work(1, "", nil)
		<-took
		w.conn.NATS().Close()
	}
	s.work(1, "", nil)
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 1, res.Summary.Trials.Errors)
	require.Equal(t, 1, res.Summary.Trials.Passed)
	require.Contains(t, res.Tasks[0].Trials[0].Error, "3 workers were lost while executing the trial")
	require.Empty(t, took)
}

// Cancelling a run ends its trials on workers within a second.
func TestCancelReachesWorkers(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan struct{})
	s := newSite(t, func(ctx context.Context, t *executor.Trial) (string, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return "partial", ctx.Err()
	})
	s.work(1, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 1), s.request(""))
	<-started
	awaitEvent(t, live, record.TrialStart)
	live.Cancel()
	<-ended
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Equal(t, 2, res.Summary.Trials.Cancelled)
	one, other := res.Tasks[0].Trials[0], res.Tasks[1].Trials[0]
	require.NotEqual(t, one.StartedAt.IsZero(), other.StartedAt.IsZero(), "what the worker sent of the trial is kept")
}

// Stopping a run lets running trials finish, and starts no more.
func TestStopReachesWorkers(t *testing.T) {
	t.Parallel()
	started, hold := make(chan struct{}), make(chan struct{})
	s := newSite(t, func(_ context.Context, t *executor.Trial) (string, error) {
		close(started) // panics for a second trial
		<-hold
		return "done", nil
	})
	s.work(1, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 1), s.request(""))
	<-started
	awaitEvent(t, live, record.TrialStart)
	live.Stop()
	awaitEvent(t, live, record.TrialComplete)
	close(hold)
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 1, res.Summary.Trials.Passed)
	require.Equal(t, 1, res.Summary.Trials.Skipped)
}

// awaitEvent waits for the first event of a type.
func awaitEvent(t *testing.T, live *runner.Run, want record.EventType) {
	t.Helper()
	events := live.Subscribe(1)
	for {
		batch, err := events.Next(t.Context())
		require.NoError(t, err)
		for _, e := range batch {
			if e.Type == want {
				return
			}
		}
	}
}

// requirePassed waits for the end of a run, of which want trials must pass.
func requirePassed(t *testing.T, live *runner.Run, want int) {
	t.Helper()
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	if res.Summary.Trials.Passed != want {
		t.Errorf("%d of %d trials passed: %s\n%s", res.Summary.Trials.Passed, want, res.Error, texts(runnertest.Follow(t, live, 1)))
	}
}

// texts returns the messages of log events.
func texts(events []*record.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == record.Log {
			b.WriteString(e.Level + ": " + e.Message + "\n")
		}
	}
	return b.String()
}

// Orders that no worker can execute are reported with what each worker lacks. They end after a
// while.
func TestNobodyCan(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	w := s.work(1, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 2), s.request("labels=gpu&wait=1s"))
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 4, res.Summary.Trials.Errors)
	require.Zero(t, w.Status().Done)
	said := texts(events)
	require.Contains(t, said, "warning: no worker can execute the trials of 2 tasks (a, b), which need the "+
		"executor agent and the label gpu: "+w.id+" (the label gpu")
	require.Contains(t, res.Tasks[1].Trials[1].Error, "no worker could execute the trial for 1s")
}

// A worker that connects later executes the waiting orders, and the run reports it.
func TestWorkerComesLater(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	s.work(1, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 2), s.request("labels=gpu"))
	events := live.Subscribe(1)
	for said := ""; !strings.Contains(said, "no worker can execute"); {
		batch, err := events.Next(t.Context())
		require.NoError(t, err)
		said += texts(batch)
	}
	able := s.work(1, "", func(o *worker.Options) { o.Offer = offers("gpu") })
	<-live.Done()
	requirePassed(t, live, 4)
	require.EqualValues(t, 4, able.Status().Done)
}

// A resumed owner takes the results that arrived in its absence, and no trial is executed twice.
func TestResumedOwner(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	started, hold := make(chan struct{}, 10), make(chan struct{})
	s := newSite(t, func(context.Context, *executor.Trial) (string, error) {
		started <- struct{}{}
		<-hold
		done.Add(1)
		return "done", nil
	})
	state := t.TempDir()
	first := s.owner(state)
	live := runnertest.Start(t, first, fmt.Sprintf(twoTasks, 5), s.request(""))
	w := s.work(2, "", nil)
	<-started
	<-started
	require.Eventually(t, func() bool {
		orders, err := w.conn.JetStream().Stream(t.Context(), fleet.NamesOf("waza").Orders)
		return err == nil && orders.CachedInfo().State.Msgs == 10
	}, time.Minute, 5*time.Millisecond)
	s.lose() // the owner's machine is disconnected
	live.Cancel()
	<-live.Done()
	require.NoError(t, first.Close(t.Context()))
	close(hold)
	w.awaitDone(t, 10)
	again, err := runnertest.Resume(t, s.owner(state), live.ID())
	require.NoError(t, err)
	<-again.Done()
	res := runnertest.ResultOf(t, again)
	require.Equal(t, 10, res.Summary.Trials.Passed)
	require.EqualValues(t, 10, done.Load())
}

// An owner that was killed after its last trial leaves results and a card. The run that resumes
// it executes nothing, and left both to expire.
func TestResumedWholeRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	s.work(2, "", nil)
	state := t.TempDir()
	live := runnertest.Start(t, s.owner(state), fmt.Sprintf(twoTasks, 2), s.request(""))
	<-live.Done()
	requirePassed(t, live, 4)

	conn, err := s.connect(t.Context(), s.address(""))
	require.NoError(t, err)
	defer conn.Close()
	names := fleet.NamesOf("waza")
	place, err := fleet.Find(t.Context(), conn.JetStream(), names)
	require.NoError(t, err)
	cards := func() []fleet.RunCard {
		list, err := fleet.Cards[fleet.RunCard](t.Context(), place.State, fleet.RunKey(""))
		require.NoError(t, err)
		return list
	}
	before := cards()
	require.Len(t, before, 1)
	before[0].State = fleet.Running
	card, err := json.Marshal(before[0])
	require.NoError(t, err)
	_, err = place.State.Put(t.Context(), fleet.RunKey(live.ID()), card)
	require.NoError(t, err)
	_, err = conn.JetStream().Publish(t.Context(), names.Result(live.ID()), []byte("{}"))
	require.NoError(t, err)
	cutEnd(t, state, live.ID())

	again, err := runnertest.Resume(t, s.owner(state), live.ID())
	require.NoError(t, err)
	<-again.Done()
	requirePassed(t, again, 4)
	after := cards()
	require.Len(t, after, 1)
	require.Equal(t, fleet.Over, after[0].State)
	require.Equal(t, before[0].Created, after[0].Created)
	results, err := conn.JetStream().Stream(t.Context(), names.Results)
	require.NoError(t, err)
	require.Zero(t, results.CachedInfo().State.Msgs)
}

// The run completes without the fleet if nothing has to be executed.
func TestResumedWholeRunWithoutServer(t *testing.T) {
	t.Parallel()
	server := fleettest.Start(t, &server.Options{})
	s := &site{T: t, url: server.ClientURL(), agents: registry(says)}
	s.work(2, "", nil)
	state := t.TempDir()
	live := runnertest.Start(t, s.owner(state), fmt.Sprintf(twoTasks, 2), s.request(""))
	<-live.Done()
	cutEnd(t, state, live.ID())
	server.Shutdown()

	again, err := runnertest.Resume(t, s.owner(state), live.ID())
	require.NoError(t, err)
	events := runnertest.Follow(t, again, again.First())
	<-again.Done()
	requirePassed(t, again, 4)
	require.Contains(t, texts(events), "what a killed process left of the run was not removed, and expires later: ")
	require.Contains(t, texts(events), "cannot reach the server")
}

// cutEnd leaves the record of a run as if its process had been killed after the last trial.
func cutEnd(t *testing.T, state, run string) {
	t.Helper()
	dir := filepath.Join(state, "runs", run)
	require.NoError(t, os.Remove(filepath.Join(dir, "result.json")))
	path := filepath.Join(dir, "journal.jsonl")
	journal, err := os.ReadFile(path)
	require.NoError(t, err)
	last := bytes.LastIndex(journal, []byte(`"trial_complete"`))
	end := last + bytes.IndexByte(journal[last:], '\n') + 1
	require.NoError(t, os.WriteFile(path, journal[:end], 0o600))
}

// Teams share only the server.
func TestTeams(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	red, blue := s.work(2, "team=red", nil), s.work(2, "team=blue", nil)
	a := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 10), s.request("team=red"))
	b := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 15), s.request("team=blue"))
	<-a.Done()
	<-b.Done()
	requirePassed(t, a, 20)
	requirePassed(t, b, 30)
	require.EqualValues(t, 20, red.Status().Done)
	require.EqualValues(t, 30, blue.Status().Done)
}

// Two owners of a team share its workers.
func TestTwoOwners(t *testing.T) {
	t.Parallel()
	s := newSite(t, says)
	s.work(3, "", nil)
	a := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 10), s.request(""))
	b := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 15), s.request(""))
	<-a.Done()
	<-b.Done()
	requirePassed(t, a, 20)
	requirePassed(t, b, 30)
}

// A draining worker finishes its trials and takes no more. A worker that ends at once gives its
// trial to a different worker and does not count as lost.
func TestDrainAndGiveBack(t *testing.T) {
	t.Parallel()
	started, hold := make(chan string, 10), make(chan struct{})
	s := newSite(t, func(ctx context.Context, t *executor.Trial) (string, error) {
		started <- t.Task.ID
		select {
		case <-hold:
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	one := s.work(1, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), fmt.Sprintf(twoTasks, 1), s.request(""))
	<-started
	two := s.work(1, "", nil)
	<-started
	one.Drain()
	two.end() // gives its trial back
	require.ErrorIs(t, <-two.done, context.Canceled)
	three := s.work(1, "", nil)
	<-started
	close(hold)
	require.NoError(t, <-one.done)
	<-live.Done()
	requirePassed(t, live, 2)
	require.EqualValues(t, 1, one.Status().Done)
	require.Zero(t, two.Status().Done)
	require.EqualValues(t, 1, three.Status().Done)
	require.Zero(t, three.Status().Again)
}
