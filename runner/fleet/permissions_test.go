package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/fleettest"
	"waza/runner/fleet/worker"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// teams is a server with the permissions of docs/fleet-security.md for the teams search and
// mail.
type teams struct {
	url    string
	seeds  map[string]string // seed files, by SEARCH_OWNER and so on
	t      *testing.T
	mu     sync.Mutex // guards denied
	denied []string
}

// configs returns the blocks of a page that nats-server reads.
func configs(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var blocks []string
	for _, part := range strings.Split(string(text), "```nats\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

func newTeams(t *testing.T) *teams {
	t.Helper()
	blocks := configs(t, "../../docs/fleet-security.md")
	require.Len(t, blocks, 2, "the page has the permissions of a team, and accounts")
	mail := strings.NewReplacer("search", "mail", "SEARCH", "MAIL").Replace(blocks[0])
	s := &teams{seeds: map[string]string{}, t: t}
	accounts := blocks[1]
	for _, login := range []string{"SEARCH_OWNER", "SEARCH_WORKER", "MAIL_OWNER", "MAIL_WORKER"} {
		file, public := fleettest.NKey(t)
		s.seeds[login] = file
		accounts = strings.Replace(accounts, "nkey: "+login, "nkey: "+public, 1)
	}
	options := &server.Options{}
	require.NoError(t, options.ProcessConfigString(blocks[0]+mail+accounts))
	s.url = fleettest.Start(t, options).ClientURL()
	return s
}

// Handle, Enabled, WithAttrs and WithGroup implement slog.Handler. They collect the permission
// violations that the server reports.
func (s *teams) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "lacks a permission") {
		r.Attrs(func(a slog.Attr) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.denied = append(s.denied, a.String())
			return true
		})
	}
	return nil
}
func (s *teams) Enabled(context.Context, slog.Level) bool { return true }
func (s *teams) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *teams) WithGroup(string) slog.Handler            { return s }

func (s *teams) address(login string) string {
	team, _, _ := strings.Cut(strings.ToLower(login), "_")
	return fmt.Sprintf("%s?team=%s&lost=1s&nkey=%s", s.url, team, s.seeds[login])
}

func (s *teams) connect(login string) *engine.Conn {
	s.t.Helper()
	a, err := engine.Parse(s.address(login))
	require.NoError(s.t, err)
	conn, err := engine.Connect(s.t.Context(), a, engine.Options{Log: slog.New(s)})
	require.NoError(s.t, err)
	s.t.Cleanup(conn.Close)
	return conn
}

// owner returns a runner whose trials the team search executes.
func (s *teams) owner(executors *executor.Registry) *runner.Runner {
	s.t.Helper()
	connect := func(ctx context.Context, a engine.Address) (*engine.Conn, error) {
		return engine.Connect(ctx, a, engine.Options{Log: slog.New(s)})
	}
	r, err := runner.New(runner.Options{
		StateDir: s.t.TempDir(), Executors: executors,
		Fleet: fleet.New(fleet.Options{Connect: connect, Log: slog.New(s)}),
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// With the permissions of the page, runs work like without permissions, and waza requests
// nothing else from the server.
func TestPermissionsSuffice(t *testing.T) {
	t.Parallel()
	s := newTeams(t)
	stuck := make(chan struct{}, 100)
	var hang atomic.Bool
	hang.Store(true)
	site := newSite(t, func(ctx context.Context, _ *executor.Trial) (string, error) {
		if hang.Load() {
			stuck <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}
		return strings.Repeat("too large for a message ", 100_000) + "done", nil
	})
	r := s.owner(site.agents)
	owner := s.connect("SEARCH_OWNER")
	place, err := fleet.Make(t.Context(), owner.JetStream(), fleet.NamesOf("search"), 1)
	require.NoError(t, err)
	work := func() *hand {
		return site.work(3, "", func(o *worker.Options) { o.Conn = s.connect("SEARCH_WORKER") })
	}
	ended := work()
	live := runnertest.Start(t, r, fmt.Sprintf(twoTasks, 5), record.Request{Fleet: s.address("SEARCH_OWNER"), Workers: 40})
	<-stuck
	hang.Store(false)
	drained := work()
	ended.end() // gives its orders back
	<-live.Done()
	require.Equal(t, 10, runnertest.ResultOf(t, live).Summary.Trials.Passed)

	hang.Store(true)
	live = runnertest.Start(t, r, fmt.Sprintf(twoTasks, 5), record.Request{Fleet: s.address("SEARCH_OWNER"), Workers: 40})
	<-stuck
	live.Cancel() // asks the worker to drop its orders
	<-live.Done()
	drained.awaitIdle(t)
	hang.Store(false)

	cards, err := fleet.Cards[fleet.WorkerCard](t.Context(), place.Workers, "worker.")
	require.NoError(t, err)
	require.NotEmpty(t, cards)
	_, err = fleet.Cards[fleet.RunCard](t.Context(), place.State, "run.")
	require.NoError(t, err)
	reply, err := owner.NATS().RequestWithContext(t.Context(), place.Worker(drained.id), []byte(fleet.DrainRequest))
	require.NoError(t, err)
	require.Equal(t, "ok", string(reply.Data))
	require.NoError(t, <-drained.done)
	s.shareLimits(site, place) // with a worker that can ask models, now the only worker

	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.denied)
}

const modelTask = `
-- eval.yaml --
name: away
config:
  executor: openai
  model: gpt-4o
  base_url: %s/v1
  api_key_command: echo sk-test-0123456789
tasks:
  - {id: a, name: A, inputs: {prompt: do a}, expected: {output_contains: [done]}}
`

// shareLimits executes a run whose provider rejects the first call, which the worker shares with
// others.
func (s *teams) shareLimits(site *site, place *fleet.Place) {
	var calls atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","model":"gpt-4o","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer api.Close()
	models := site.work(1, "", func(o *worker.Options) { o.Conn, o.Executors = s.connect("SEARCH_WORKER"), plan.Executors })
	r := s.owner(plan.Executors)
	live := runnertest.Start(s.t, r, fmt.Sprintf(modelTask, api.URL), record.Request{Fleet: s.address("SEARCH_OWNER")})
	<-live.Done()
	require.Equal(s.t, 1, runnertest.ResultOf(s.t, live).Summary.Trials.Passed)
	models.Drain()
	require.NoError(s.t, <-models.done)
	limits, err := place.JS.KeyValue(s.t.Context(), "WAZA_SEARCH_LIMITS")
	require.NoError(s.t, err)
	status, err := limits.Status(s.t.Context())
	require.NoError(s.t, err)
	require.EqualValues(s.t, 1, status.Values())
}

// awaitIdle waits until the worker is idle.
func (h *hand) awaitIdle(t *testing.T) {
	require.Eventually(t, func() bool { return h.Status().Busy == 0 }, time.Minute, 5*time.Millisecond)
}

// denies does something with a login, and expects that the server does not permit it.
func (s *teams) denies(login, what string, do func(*nats.Conn, jetstream.JetStream)) {
	s.t.Helper()
	refused := make(chan error, 100)
	seed, err := nats.NkeyOptionFromSeed(s.seeds[login])
	require.NoError(s.t, err)
	team, _, _ := strings.Cut(strings.ToLower(login), "_")
	conn, err := nats.Connect(s.url, seed, nats.CustomInboxPrefix(engine.InboxPrefix(team)), nats.ErrorHandler(func(
		_ *nats.Conn, _ *nats.Subscription, err error,
	) {
		refused <- err
	}))
	require.NoError(s.t, err)
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(100*time.Millisecond))
	require.NoError(s.t, err)
	do(conn, js)
	require.NoError(s.t, conn.Flush())
	select {
	case err := <-refused:
		require.ErrorIs(s.t, err, nats.ErrPermissionViolation, "%s: %s", login, what)
	case <-time.After(10 * time.Second):
		s.t.Errorf("%s may %s", login, what)
	}
}

// Teams and workers cannot access what belongs to others.
func TestPermissionsRefuse(t *testing.T) {
	t.Parallel()
	s := newTeams(t)
	owner := s.connect("MAIL_OWNER")
	_, err := fleet.Make(t.Context(), owner.JetStream(), fleet.NamesOf("mail"), 1)
	require.NoError(t, err)
	owner = s.connect("SEARCH_OWNER")
	_, err = fleet.Make(t.Context(), owner.JetStream(), fleet.NamesOf("search"), 1)
	require.NoError(t, err)

	publish := func(subject string) func(*nats.Conn, jetstream.JetStream) {
		return func(c *nats.Conn, _ jetstream.JetStream) { _ = c.Publish(subject, nil) }
	}
	subscribe := func(subject string) func(*nats.Conn, jetstream.JetStream) {
		return func(c *nats.Conn, _ jetstream.JetStream) { _, _ = c.SubscribeSync(subject) }
	}
	for _, subject := range []string{
		"waza.mail.order.c.r.i", "waza.mail.control.r", "waza.mail.result.r", "waza.mail.note.r", "waza.mail.worker.w",
		"$KV.WAZA_MAIL_STATE.run.r", "$KV.WAZA_MAIL_WORKERS.worker.w", "$KV.WAZA_MAIL_LIMITS.k", "$O.WAZA_MAIL_FILES.M.x",
		"$JS.API.STREAM.INFO.WAZA_MAIL_ORDERS", "$JS.API.STREAM.DELETE.WAZA_MAIL_ORDERS", "$JS.API.STREAM.PURGE.WAZA_MAIL_RESULTS",
		"$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.MSG.GET.WAZA_MAIL_ORDERS",
		"$JS.API.CONSUMER.CREATE.WAZA_MAIL_RESULTS.c", "$JS.API.CONSUMER.MSG.NEXT.WAZA_MAIL_ORDERS.c", "$JS.ACK.WAZA_MAIL_ORDERS.c.1.1.1.1.0",
		"$JS.API.DIRECT.GET.OBJ_WAZA_MAIL_FILES.x", "_INBOX.waza.mail.x", "$SYS.REQ.SERVER.PING",
	} {
		s.denies("SEARCH_OWNER", "publish to "+subject, publish(subject))
		s.denies("SEARCH_WORKER", "publish to "+subject, publish(subject))
	}
	for _, subject := range []string{
		">", "waza.>", "waza.mail.note.*", "waza.mail.order.>", "waza.*.control.*", "_INBOX.>", "_INBOX.waza.>",
		"_INBOX.waza.mail.x", "$JS.>", "$KV.>",
	} {
		s.denies("SEARCH_OWNER", "subscribe to "+subject, subscribe(subject))
		s.denies("SEARCH_WORKER", "subscribe to "+subject, subscribe(subject))
	}
	for _, subject := range []string{
		"waza.search.control.r", "waza.search.worker.w", "$KV.WAZA_SEARCH_STATE.run.r",
		"$JS.API.STREAM.CREATE.WAZA_SEARCH_X", "$JS.API.STREAM.CREATE.WAZA_SEARCH_ORDERS", "$JS.API.STREAM.UPDATE.WAZA_SEARCH_ORDERS",
		"$JS.API.STREAM.DELETE.WAZA_SEARCH_ORDERS", "$JS.API.STREAM.PURGE.WAZA_SEARCH_ORDERS", "$JS.API.STREAM.PURGE.WAZA_SEARCH_RESULTS",
		"$JS.API.STREAM.MSG.GET.WAZA_SEARCH_RESULTS", "$JS.API.STREAM.MSG.DELETE.WAZA_SEARCH_ORDERS",
		"$JS.API.CONSUMER.CREATE.WAZA_SEARCH_RESULTS.c", "$JS.API.CONSUMER.CREATE.WAZA_SEARCH_ORDERS.c",
		"$JS.API.CONSUMER.DELETE.WAZA_SEARCH_ORDERS.c",
		"$JS.API.CONSUMER.MSG.NEXT.WAZA_SEARCH_RESULTS.c", "$JS.ACK.WAZA_SEARCH_RESULTS.c.1.1.1.1.0",
	} {
		s.denies("SEARCH_WORKER", "publish to "+subject, publish(subject))
	}
	for _, subject := range []string{"waza.search.note.*", "waza.search.result.*", "waza.search.order.>"} {
		s.denies("SEARCH_WORKER", "subscribe to "+subject, subscribe(subject))
	}
	for _, subject := range []string{
		"$JS.API.STREAM.DELETE.WAZA_SEARCH_ORDERS", "$JS.API.STREAM.UPDATE.WAZA_SEARCH_ORDERS",
		"$JS.API.STREAM.CREATE.OTHER", "waza.search.result.r",
	} {
		s.denies("SEARCH_OWNER", "publish to "+subject, publish(subject))
	}
}
