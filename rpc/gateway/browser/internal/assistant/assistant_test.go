package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/store"
	"waza/runner/executor"
	"waza/runner/executor/browser"
	"waza/runner/provider"
	"waza/runner/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the time limit for each wait of a test.
const patience = 20 * time.Second

// client is a connection that collects its events.
type client struct {
	t          *testing.T
	id         string
	evaluation bool
	events     chan any
}

func (c *client) ExtensionID() string          { return c.id }
func (c *client) Evaluation() bool             { return c.evaluation }
func (c *client) NewID() string                { return uuid.NewString() }
func (c *client) Describe() *browser.Extension { return &browser.Extension{ID: c.id, Address: c.id} }
func (c *client) Happened(e any)               { c.events <- e }

// status waits for a status of a command.
func (c *client) status(command, status string) StatusChanged {
	c.t.Helper()
	return until(c, func(s StatusChanged) bool { return s.CommandID == command && s.Status == status })
}

// until waits for an event.
func until[T any](c *client, fits func(T) bool) T {
	c.t.Helper()
	for {
		select {
		case e := <-c.events:
			if found, ok := e.(T); ok && fits(found) {
				return found
			}
		case <-time.After(patience):
			require.FailNow(c.t, "no event arrived in time")
		}
	}
}

func any1[T any](T) bool { return true }

// modelFunc is a model with answers from the test.
type modelFunc func(ctx context.Context, r *provider.Request) (*provider.Reply, error)

func (m modelFunc) Complete(ctx context.Context, r *provider.Request) (*provider.Reply, error) {
	reply, err := m(ctx, r)
	if reply == nil {
		reply = &provider.Reply{}
	}
	return reply, err
}

func says(text string) (*provider.Reply, error) {
	return &provider.Reply{Message: provider.Message{Role: provider.Assistant, Text: text}, Tries: 1}, nil
}

func calls(tool, arguments string) (*provider.Reply, error) {
	return &provider.Reply{
		Message: provider.Message{Role: provider.Assistant, Calls: []provider.Call{{ID: "1", Name: tool, Arguments: json.RawMessage(arguments)}}},
		Tries:   1,
	}, nil
}

// desk holds the assistants of a test, one of them active.
type desk struct {
	*Assistants
	t     *testing.T
	store *store.Store
	bob   string
}

func newDesk(t *testing.T, m modelFunc, change func(o *Options)) *desk {
	t.Helper()
	s, err := store.Open(t.TempDir())
	require.NoError(t, err)
	o := Options{
		Store: store.AssistantsOf(s), MaxAssistants: 20, MaxCapabilities: 10, MaxWaiting: 10, MaxTextChars: 100,
		MaxNameChars: 100, MaxInstructionsChars: 100,
		CommandTimeout: time.Minute, ToolTimeout: time.Second, CancelTimeout: time.Second, SessionLifetime: time.Hour,
	}
	if m != nil {
		o.Model = func(context.Context, string) (provider.Client, error) { return m, nil }
	}
	if change != nil {
		change(&o)
	}
	a, err := New(o)
	require.NoError(t, err)
	d := &desk{Assistants: a, t: t, store: s}
	t.Cleanup(func() {
		a.Close()
		_ = s.Close()
	})
	bob, err := a.Create(Draft{Name: "Bob", Instructions: "You are Bob.", Capabilities: []string{"navigate"}})
	require.NoError(t, err)
	d.bob = bob.ID
	_, err = a.SetStatus(nil, bob.ID, Active)
	require.NoError(t, err)
	return d
}

func (d *desk) connect(id string) *client {
	c := &client{t: d.t, id: id, events: make(chan any, 10_000)}
	d.Connect(c)
	return c
}

func (d *desk) submit(c *client, id string) {
	d.t.Helper()
	require.NoError(d.t, d.Submit(c, Submission{ID: id, Text: id, AssistantID: d.bob}))
}

func prompt(r *provider.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == provider.User {
			return m.Text
		}
	}
	return ""
}

// Without a configured model, commands fail at once and name the setting.
func TestCommandsWithoutAModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, func(o *Options) { o.CommandTimeout = time.Hour })
	c := d.connect("x")
	for _, id := range []string{"1", "2"} {
		d.submit(c, id)
		require.Equal(t, errNoModel.Error(), c.status(id, Failed).Error)
		f := until(c, any1[Failure])
		require.Equal(t, &Fault{Code: CodeServiceUnavailable, Message: errNoModel.Error()}, f.Fault)
	}
}

// While the model does not answer, all commands time out at the same time, not one after the
// other.
func TestCommandsThatWaitForTheModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(context.Context, *provider.Request) (*provider.Reply, error) {
		return nil, &provider.Error{Kind: provider.Unreachable, Message: "gone"}
	}, func(o *Options) { o.CommandTimeout = 2 * time.Second })
	c := d.connect("x")
	const commands = 10
	start := time.Now()
	for i := range commands {
		d.submit(c, fmt.Sprint(i))
	}
	unavailable := map[string]bool{}
	for len(unavailable) < commands {
		f := until(c, any1[Failure])
		require.Equal(t, CodeServiceUnavailable, f.Fault.Code)
		unavailable[f.CommandID] = true
	}
	require.Less(t, time.Since(start), commands*2*time.Second, "one after the other, they need at least this time")
	require.GreaterOrEqual(t, time.Since(start), 2*time.Second)
}

// The test checks the end of commands after errors of the model.
func TestModelErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(_ context.Context, r *provider.Request) (*provider.Reply, error) {
		return nil, &provider.Error{Kind: provider.Kind(prompt(r)), Message: "no"}
	}, nil)
	c := d.connect("x")
	for _, kind := range []provider.Kind{provider.Invalid, provider.Refused, provider.OverBudget} {
		d.submit(c, string(kind))
		require.Equal(t, "no", c.status(string(kind), Failed).Error)
		if kind == provider.Refused {
			require.Equal(t, CodeServiceUnavailable, until(c, any1[Failure]).Fault.Code)
		}
		until(c, any1[QueueChanged])
	}
	require.Empty(t, c.events, "other errors are not failures of the service")
}

// A model that fails during a command is asked again, and no tool runs twice.
func TestModelLostAfterTool(t *testing.T) {
	t.Parallel()
	asked := 0
	d := newDesk(t, func(context.Context, *provider.Request) (*provider.Reply, error) {
		switch asked++; asked {
		case 1:
			return calls("navigate", `{"url":"https://x"}`)
		case 2:
			return nil, &provider.Error{Kind: provider.Unreachable, Message: "gone"}
		}
		return says("back")
	}, nil)
	c := d.connect("x")
	d.submit(c, "1")
	c.status("1", Queued)
	c.status("1", Executing)
	use := until(c, any1[Execution])
	require.True(t, d.Result(c, use.ID, ToolResult{Status: "success"}))
	require.False(t, d.Result(c, use.ID, ToolResult{Status: "success"}), "only once")
	require.Contains(t, c.status("1", Executing).Message, "Service degraded")
	require.Equal(t, "back", c.status("1", Completed).Result)
	require.Equal(t, 3, asked)
}

// Commands of a disconnected extension do not block others, and do not wait forever.
func TestExtensionThatIsAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(_ context.Context, r *provider.Request) (*provider.Reply, error) { return says(prompt(r)) }, nil)
	away := d.connect("away")
	release := make(chan struct{})
	d.o.Model = func(context.Context, string) (provider.Client, error) {
		return modelFunc(func(ctx context.Context, r *provider.Request) (*provider.Reply, error) {
			if prompt(r) == "first" {
				<-release
			}
			return says(prompt(r))
		}), nil
	}
	d.submit(away, "first")
	d.submit(away, "second")
	d.submit(away, "third")
	d.Disconnect(away)
	here := d.connect("here")
	d.submit(here, "other")
	close(release)
	here.status("other", Completed)
	q, err := d.Queue(d.bob)
	require.NoError(t, err)
	require.Len(t, q.Waiting, 2)

	d.mu.Lock()
	for _, c := range d.roster.byID[d.bob].waiting {
		if c.ID == "second" {
			c.QueuedAt = time.Now().Add(-queuedLifetime - time.Second)
		}
	}
	d.giveUpLocked(time.Now())
	d.mu.Unlock()
	again := d.connect("away")
	require.Equal(t, "first", again.status("first", Completed).Result)
	require.Equal(t, errAway.Error(), again.status("second", TimedOut).Error)
	again.status("third", Completed)
	d.submit(again, "fourth")
	again.status("fourth", Completed)
}

// The model gets the messages of a session, starting with one of the user, up to a maximum size.
func TestHistory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", historyBytes/2)
	var said []string
	d := newDesk(t, func(_ context.Context, r *provider.Request) (*provider.Reply, error) {
		said = nil
		for _, m := range r.Messages {
			said = append(said, fmt.Sprint(m.Role, len(m.Text)))
		}
		if prompt(r) == "fail" {
			return nil, &provider.Error{Kind: provider.Invalid, Message: "no"}
		}
		return says(long[:len(long)-len(prompt(r))])
	}, nil)
	c := d.connect("x")
	session := ""
	for i, step := range []struct{ prompt, ends string }{{"one", Completed}, {"fail", Failed}, {"two", Completed}, {"three", Completed}} {
		require.NoError(t, d.Submit(c, Submission{ID: fmt.Sprint(i), Text: step.prompt, SessionID: session}))
		session = c.status(fmt.Sprint(i), step.ends).SessionID
	}
	// Both answers fit together with "two", which is between them, but not with the first
	// prompt.
	require.Equal(t, []string{"user4", "user3", "assistant99997", "user5"}, said)
}

// Names that the database treats as equal are taken.
func TestNamesTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	for _, pair := range [][2]string{{"i x", "\u0130 X"}, {"s", "\u017f"}, {"k", "\u212a"}, {"ßa", "ẞA"}} {
		draft := Draft{Name: pair[0], Instructions: "You are new.", Capabilities: []string{"scroll"}}
		_, err := d.Create(draft)
		require.NoError(t, err)
		draft.Name = pair[1]
		_, err = d.Create(draft)
		var f *Fault
		require.ErrorAs(t, err, &f, pair[1])
		require.Equal(t, CodeNameTaken, f.Code, pair[1])
	}
}

// A database failure is a server error for the client that causes it.
func TestDatabaseFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(_ context.Context, r *provider.Request) (*provider.Reply, error) { return says(prompt(r)) }, nil)
	c := d.connect("x")
	require.NoError(t, d.store.Close())
	var all []error
	collect := func(err error) { all = append(all, err) }
	_, err := d.Create(Draft{Name: "Ann", Instructions: "You are Ann.", Capabilities: []string{"scroll"}})
	collect(err)
	_, err = d.SetStatus(c, d.bob, Active)
	collect(err)
	_, err = d.SetStatus(c, d.bob, Inactive)
	collect(err)
	_, err = d.SetStatus(c, d.bob, Deleted)
	collect(err)
	_, err = d.Sessions.Archive("s", true)
	collect(err)
	_, err = d.Sessions.List("", true, 1, 0)
	collect(err)
	collect(d.Submit(c, Submission{ID: "1", Text: "x", AssistantID: d.bob}))
	collect(d.Cancel(c, "1"))
	for i, err := range all {
		var f *Fault
		require.True(t, errors.As(err, &f), "%d: %v", i, err)
		require.Equal(t, CodeInternal, f.Code, i)
	}
	require.Len(t, d.List(), 1, "nothing has changed")
	require.Equal(t, Active, d.List()[0].Status)
}

// Trials get available extensions in the order of their requests.
func TestReserve(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(_ context.Context, r *provider.Request) (*provider.Reply, error) { return says(prompt(r)) }, nil)
	d.connect("person")
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	cancel(gaveUp)
	_, err := d.Reserve(ctx, &browser.Want{ID: "none"})
	require.ErrorIs(t, err, gaveUp)
	require.Zero(t, d.pool.Waiting())

	var order []string
	var mu sync.Mutex
	var all sync.WaitGroup
	reserve := func(id, extension string) {
		d.mu.Lock()
		before := d.pool.Waiting()
		d.mu.Unlock()
		all.Go(func() {
			s, err := d.Reserve(t.Context(), &browser.Want{ID: id, Extension: extension})
			if err != nil {
				return
			}
			mu.Lock()
			order = append(order, id+" "+s.ExtensionID())
			mu.Unlock()
			s.Release()
			s.Release() // has no effect
		})
		require.Eventually(t, func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.pool.Waiting() > before
		}, patience, time.Millisecond)
	}
	reserve("1", "")
	reserve("2", "other")
	reserve("3", "")
	offers := &client{t: t, id: "offers", evaluation: true, events: make(chan any, 100)}
	d.Connect(offers)
	d.connect("other")
	all.Wait()
	require.ElementsMatch(t, []string{"1 offers", "2 other", "3 offers"}, order)

	s, err := d.Reserve(t.Context(), &browser.Want{ID: "4"})
	require.NoError(t, err)
	d.Disconnect(offers)
	_, err = s.Execute(t.Context(), &browser.Command{Text: "x", Made: &browser.Made{Capabilities: []string{"scroll"}}}, nil)
	require.NotNil(t, executor.AsRetry(err), err)
	s.Release()
	d.Close()
	_, err = d.Reserve(t.Context(), &browser.Want{ID: "5"})
	require.NotNil(t, executor.AsRetry(err), err)
}

// A trial with an endless model gets the last answer and a warning.
func TestTrialWithTooManyTurns(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(context.Context, *provider.Request) (*provider.Reply, error) {
		reply, err := calls("navigate", `{}`)
		reply.Message.Text, reply.Thought, reply.Model = "again", "hm", "large-1"
		reply.Usage = record.Usage{InputTokens: 2, OutputTokens: 1}
		return reply, err
	}, func(o *Options) { o.Redact = func(s string) string { return "<" + s + ">" } })
	d.Connect(&client{t: t, id: "offers", evaluation: true, events: make(chan any, 1000)})
	s, err := d.Reserve(t.Context(), &browser.Want{ID: "1"})
	require.NoError(t, err)
	defer s.Release()
	var steps []browser.Step
	answer, err := s.Execute(t.Context(),
		&browser.Command{Text: "x", MaxTurns: 2, Made: &browser.Made{Capabilities: []string{"navigate"}}},
		func(s browser.Step) { steps = append(steps, s) })
	require.NoError(t, err)
	require.Equal(t, &browser.Answer{Text: "<again>", Model: "large-1", Requests: 2, Usage: record.Usage{InputTokens: 4, OutputTokens: 2}},
		answer)
	require.Len(t, steps, 7)
	require.Equal(t, "<hm>", steps[0].Thought)
	require.Equal(t, "<again>", steps[1].Message)
	require.Equal(t, "failed", steps[2].Tool.Status)
	require.JSONEq(t, `"<error: invalid arguments of navigate: url: is missing>"`, string(steps[2].Tool.Result))
	require.Contains(t, steps[6].Warning, "stopped after")
	require.Len(t, d.List(), 1, "the assistant of the trial must not be listed")
}
