package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/fleettest"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/seal"
	"waza/runner/fleet/worker"
	"waza/runner/grader/builtin"
	"waza/runner/internal/bundle"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// team is a fleet with one worker, to which the test sends orders and from which it receives
// results.
type team struct {
	*testing.T
	url    string
	agents *executor.Registry
	place  *fleet.Place
	worker *worker.Worker
	id     string       // the worker's
	conn   *engine.Conn // the worker's
	plan   string       // name of an object that is no plan
}

const class = "any"

// newTeam starts a server and a worker, whose trials the agent executes.
func newTeam(t *testing.T, slots int, trust *seal.Trust, agent runnertest.Agent) *team {
	t.Helper()
	s := &team{T: t, url: fleettest.Server(t) + "?lost=1m", agents: executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: "agent"},
		Open: func(context.Context, executor.Settings) (executor.Executor, error) { return agent, nil },
	})}
	var err error
	s.place, err = fleet.Make(t.Context(), s.connect().JetStream(), fleet.NamesOf("waza"), 1)
	require.NoError(t, err)
	require.NoError(t, s.place.MakeClass(t.Context(), class, nil, time.Minute, 1))
	s.plan, err = bundle.Keep(t.Context(), bundle.InBucket(s.place.JS, s.place.Files), []byte("["))
	require.NoError(t, err)
	offers := offer.Of(nil, os.Environ())
	offers.Executors = append(offers.Executors, "agent")
	s.conn, s.id = s.connect(), worker.NewID()
	s.worker = worker.New(worker.Options{
		ID: s.id, Version: "test", Slots: slots, Offer: offers, Trust: trust, Conn: s.conn, Dir: t.TempDir(),
		Executors: s.agents, Graders: builtin.Graders, Limits: &provider.Limits{}, Log: slog.New(slog.DiscardHandler),
	})
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.worker.Run(ctx) }()
	t.Cleanup(func() {
		end()
		<-done
	})
	return s
}

// connect returns a connection that ends with the test.
func (s *team) connect() *engine.Conn {
	s.Helper()
	address, err := engine.Parse(s.url)
	require.NoError(s, err)
	conn, err := engine.Connect(s.Context(), address, engine.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(s, err)
	s.Cleanup(conn.Close)
	return conn
}

// publish sends an order with a body and, if it is not nil, the seal of a signer.
func (s *team) publish(subject, body string, signer *seal.Signer) {
	s.Helper()
	msg := nats.NewMsg(subject)
	msg.Data = []byte(body)
	if signer != nil {
		sealed := signer.Sign(s.place.Team, subject, msg.Data)
		msg.Header.Set(seal.HeaderKey, sealed.Key)
		msg.Header.Set(seal.HeaderSignature, sealed.Signature)
	}
	_, err := s.place.JS.PublishMsg(s.Context(), msg)
	require.NoError(s, err)
}

// refusals receives the results of n orders of a run that have no trial, and returns them by the
// ids of the orders.
func (s *team) refusals(run string, n int) map[string]fleet.Result {
	s.Helper()
	consumer, err := s.place.JS.CreateOrUpdateConsumer(s.Context(), s.place.Results, jetstream.ConsumerConfig{
		FilterSubject: s.place.Result(run), AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(s, err)
	list := map[string]fleet.Result{}
	for len(list) < n {
		msg, err := consumer.Next(jetstream.FetchMaxWait(time.Minute))
		require.NoError(s, err)
		var all fleet.Results
		require.NoError(s, json.Unmarshal(msg.Data(), &all))
		for _, r := range all.List {
			require.Empty(s, r.Trial)
			list[r.ID] = r
		}
		require.NoError(s, msg.Ack())
	}
	return list
}

// awaitFree waits until the worker executes nothing, and the server has no orders.
func (s *team) awaitFree() {
	s.Helper()
	require.Eventually(s, func() bool {
		orders, err := s.place.JS.Stream(s.Context(), s.place.Orders)
		return err == nil && orders.CachedInfo().State.Msgs == 0 && s.worker.Status().Busy == 0
	}, time.Minute, 5*time.Millisecond)
}

// start starts a run of a task in the fleet.
func (s *team) start() *runner.Run {
	s.Helper()
	log := slog.New(slog.DiscardHandler)
	connect := func(ctx context.Context, a engine.Address) (*engine.Conn, error) {
		return engine.Connect(ctx, a, engine.Options{Log: log})
	}
	r, err := runner.New(runner.Options{
		StateDir: s.TempDir(), Executors: s.agents,
		Fleet: fleet.New(fleet.Options{Log: log, Check: 300 * time.Millisecond, Connect: connect}),
	})
	require.NoError(s, err)
	s.Cleanup(func() { _ = r.Close(context.Background()) })
	return runnertest.Start(s, r, `
-- eval.yaml --
name: away
config: {executor: agent}
tasks: [{id: a, prompt: p, expected: {output_contains: [done]}}]
`, record.Request{Fleet: s.url})
}

// requirePassed waits for the end of a run, whose only trial must pass.
func requirePassed(t *testing.T, live *runner.Run) {
	t.Helper()
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 1, res.Summary.Trials.Passed, "%s", res.Error)
	require.Equal(t, 1, res.Summary.Trials.Total)
}

func says(context.Context, *executor.Trial) (string, error) { return "done", nil }

// order returns the body of an order that a worker cannot prepare.
func (s *team) order(run, id string, expires time.Time) string {
	s.Helper()
	b, err := json.Marshal(&fleet.Order{
		Terms:   fleet.Terms{Protocol: fleet.Protocol, Run: run, Plan: s.plan, Files: s.plan, Expires: expires},
		Request: fleet.Request{ID: id, Task: 1, Num: 1},
	})
	require.NoError(s, err)
	return string(b)
}

// A worker removes orders that nobody can have meant, and answers those that it must not execute.
// Neither takes a place.
func TestRefusesOrders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"known", "other"} {
		_, err := seal.NewKey(dir + "/" + name)
		require.NoError(t, err)
	}
	known, err := seal.ReadSigner(dir + "/known")
	require.NoError(t, err)
	other, err := seal.ReadSigner(dir + "/other")
	require.NoError(t, err)
	trust, err := seal.ReadTrust(known.Public())
	require.NoError(t, err)
	s := newTeam(t, 1, trust, says)
	const run = "20260101-000000.000-a"
	soon := time.Now().Add(time.Hour)
	for i, body := range []string{
		"", "{", "null", "[]", `{"protocol":1}`, s.order("20260101-000000.000-b", "1", soon), s.order(run, "a.b", soon),
		strings.Replace(s.order(run, "6", soon), `"task":1`, `"task":0`, 1),
		strings.Replace(s.order(run, "7", soon), `"protocol":1`, `"protocol":9`, 1),
	} {
		s.publish(s.place.Order(class, run, fmt.Sprintf("bad-%d", i)), body, known)
	}
	s.publish(s.place.Order(class, run, "unsigned"), s.order(run, "unsigned", soon), nil)
	s.publish(s.place.Order(class, run, "stranger"), s.order(run, "stranger", soon), other)
	s.publish(s.place.Order(class, run, "expired"), s.order(run, "expired", time.Now().Add(-time.Hour)), known)
	s.publish(s.place.Order(class, run, "plan"), s.order(run, "plan", soon), known)
	got := s.refusals(run, 4)
	for id, want := range map[string]string{
		"unsigned": "not trusted", "stranger": "not trusted", "expired": "expired at", "plan": "plan of the run",
	} {
		require.Contains(t, got[id].Reason, want, id)
		require.Equal(t, id != "plan", got[id].Refused, id)
	}
	s.awaitFree()
	require.Zero(t, s.worker.Status().Done)
}

// Orders that cannot be prepared free their place, also for a run that follows.
func TestPlacesFreeAfterErrors(t *testing.T) {
	t.Parallel()
	s := newTeam(t, 1, nil, says)
	const run, n = "20260101-000000.000-a", 5
	for i := range n {
		id := fmt.Sprintf("1-%d-x", i)
		s.publish(s.place.Order(class, run, id), s.order(run, id, time.Now().Add(time.Hour)), nil)
	}
	for id, r := range s.refusals(run, n) {
		require.Contains(t, r.Reason, "cannot prepare the trial: plan of the run", id)
		require.False(t, r.Refused, id)
	}
	requirePassed(t, s.start())
	s.awaitFree()
	require.EqualValues(t, 1, s.worker.Status().Done)
}

// A trial continues while its worker reconnects. If its order arrives again, both are executed,
// and the run counts one.
func TestOrderRepeatedAfterReconnect(t *testing.T) {
	t.Parallel()
	started, hold := make(chan struct{}, 10), make(chan struct{})
	s := newTeam(t, 2, nil, func(ctx context.Context, _ *executor.Trial) (string, error) {
		started <- struct{}{}
		select {
		case <-hold:
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	live := s.start()
	<-started
	require.NoError(t, s.conn.NATS().ForceReconnect())
	orders, err := s.place.JS.Stream(t.Context(), s.place.Orders)
	require.NoError(t, err)
	first, err := orders.GetMsg(t.Context(), orders.CachedInfo().State.FirstSeq)
	require.NoError(t, err)
	s.publish(first.Subject, string(first.Data), nil)
	<-started
	require.Equal(t, 2, s.worker.Status().Busy)
	close(hold)
	requirePassed(t, live)
	s.awaitFree()
}

// A dropped order ends its running trial without a result and frees its place. Requests that do
// not name the order have no effect. The owner here still wants the trial, and sends it again.
func TestDropWhileTrialRuns(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}, 1), make(chan struct{})
	var again atomic.Bool
	s := newTeam(t, 1, nil, func(ctx context.Context, _ *executor.Trial) (string, error) {
		if again.Load() {
			return "done", nil
		}
		started <- struct{}{}
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	})
	live := s.start()
	<-started
	orders, err := s.place.JS.Stream(t.Context(), s.place.Orders)
	require.NoError(t, err)
	first, err := orders.GetMsg(t.Context(), orders.CachedInfo().State.FirstSeq)
	require.NoError(t, err)
	var o fleet.Order
	require.NoError(t, json.Unmarshal(first.Data, &o))
	drop, err := json.Marshal(fleet.Control{Drop: []string{o.ID}})
	require.NoError(t, err)
	owner := s.connect().NATS()
	for _, data := range []string{"{", `{"drop":["other"]}`} {
		require.NoError(t, owner.Publish(s.place.Control(o.Run), []byte(data)))
	}
	require.NoError(t, owner.Publish(s.place.Control("other"), drop))
	require.NoError(t, owner.Flush())
	answer, err := owner.Request(s.place.Worker(s.id), []byte("hello"), time.Minute) // the worker got the requests before
	require.NoError(t, err)
	require.Equal(t, "ok", string(answer.Data))
	select {
	case <-ended:
		t.Fatal("a request that does not name the order has ended its trial")
	default:
	}
	again.Store(true)
	require.NoError(t, owner.Publish(s.place.Control(o.Run), drop))
	<-ended
	requirePassed(t, live)
	s.awaitFree()
	require.EqualValues(t, 1, s.worker.Status().Done)
}
