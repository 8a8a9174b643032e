package routing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/runner/routing"
)

// first chooses the first client, or the number of clients that the message contains.
type first int

func (n first) Choose(_ context.Context, q *routing.Question) (*routing.Choice, error) {
	c := &routing.Choice{By: routing.ByModel, Reason: fmt.Sprintf("of %d, after %d rejections", len(q.Clients), len(q.Rejections))}
	for _, client := range q.Clients[:min(int(n), len(q.Clients))] {
		c.Clients = append(c.Clients, client.Name)
	}
	return c, nil
}

// post has clients that answer by a function; nil never answers.
type post struct {
	clients []routing.Client
	flight  *routing.Flight
	answer  func(client string, d *routing.Delivery, f *routing.Flight)

	mu    sync.Mutex
	got   []string // client: text
	kept  []*routing.Routed
	fails error
}

func (p *post) Clients() []routing.Client { return p.clients }

func (p *post) Deliver(client string, d *routing.Delivery) error {
	p.mu.Lock()
	p.got = append(p.got, client+": "+d.Text)
	p.mu.Unlock()
	if client == "absent" {
		return errors.New("not there")
	}
	if p.answer != nil {
		p.answer(client, d, p.flight)
	}
	return nil
}

func (p *post) Changed(r *routing.Routed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, r)
	return p.fails
}

func clients(names ...string) []routing.Client {
	var list []routing.Client
	for _, n := range names {
		list = append(list, routing.Client{Name: n, Description: n})
	}
	return list
}

func (p *post) start(text string, chooser routing.Chooser) *routing.Flight {
	r := &routing.Router{Chooser: chooser, MaxReroutes: routing.DefaultReroutes, ResponseTimeout: routing.DefaultResponseTimeout}
	p.flight = r.NewFlight(routing.Routed{Message: routing.Message{ID: "msg-1", Text: text}}, p)
	return p.flight
}

func says(answers map[string]string) func(string, *routing.Delivery, *routing.Flight) {
	return func(client string, _ *routing.Delivery, f *routing.Flight) {
		if kind := answers[client]; kind != "" {
			f.Answer(client, routing.Answer{Kind: kind, Reason: client + " says no"})
		}
	}
}

// states formats a message as its status and recipients.
func states(r *routing.Routed) []string {
	list := []string{r.Status}
	for _, p := range r.Recipients {
		list = append(list, p.Client+" "+p.State)
	}
	return list
}

func TestFlights(t *testing.T) {
	t.Parallel()
	const ack, no, note = routing.Acknowledged, routing.Rejected, routing.Notified
	for _, c := range []struct {
		name, text string
		clients    []routing.Client
		chooser    routing.Chooser
		answers    map[string]string
		want       []string
		took       time.Duration
	}{
		{"taken at once", "x", clients("a", "b"), first(1), map[string]string{"a": ack}, []string{"taken", "a acknowledged"}, 0},
		{"a notification first", "x", clients("a", "b"), first(1), map[string]string{"a": note}, []string{"taken", "a notified"}, 0},
		{
			"rejected, then taken", "x", clients("a", "b"), first(1), map[string]string{"a": no, "b": ack},
			[]string{"taken", "a rejected", "b acknowledged"}, 0,
		},
		{
			"at most three times", "x", clients("a", "b", "c", "d", "e"), first(1),
			map[string]string{"a": no, "b": no, "c": no, "d": no, "e": ack},
			[]string{"refused", "a rejected", "b rejected", "c rejected", "d rejected"}, 0,
		},
		{
			"nobody left", "x", clients("a", "b"), first(1), map[string]string{"a": no, "b": no},
			[]string{"refused", "a rejected", "b rejected"}, 0,
		},
		{
			"no answer in time", "x", clients("a", "b"), first(1), map[string]string{"b": ack},
			[]string{"taken", "a rejected", "b acknowledged"}, 30 * time.Second,
		},
		{
			"no longer connected", "x", clients("absent", "b"), first(1), map[string]string{"b": ack},
			[]string{"taken", "absent rejected", "b acknowledged"}, 0,
		},
		{
			"several", "x", clients("a", "b", "c"), first(2), map[string]string{"a": ack, "b": ack},
			[]string{"taken", "a acknowledged", "b acknowledged"}, 0,
		},
		{
			"several, none after an acknowledgement", "x", clients("a", "b", "c"), first(2),
			map[string]string{"a": ack, "b": no}, []string{"taken", "a acknowledged", "b rejected"}, 0,
		},
		{
			"several, one is silent", "x", clients("a", "b", "c"), first(2), map[string]string{"a": ack},
			[]string{"taken", "a acknowledged", "b rejected"}, 30 * time.Second,
		},
		{"nobody is chosen", "x", clients("a"), first(0), nil, []string{"undelivered"}, 0},
		{"no client is connected", "x", nil, first(1), nil, []string{"undelivered"}, 0},
		{"direct", "B: x", clients("a", "b"), first(1), map[string]string{"b": ack}, []string{"taken", "b acknowledged"}, 0},
		{
			"direct, rejected", "b: x", clients("a", "b"), first(1), map[string]string{"b": no, "a": ack},
			[]string{"taken", "b rejected", "a acknowledged"}, 0,
		},
		{"direct to nobody", "z: x", clients("a", "b"), first(1), map[string]string{"a": ack}, []string{"taken", "a acknowledged"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &post{clients: c.clients, answer: says(c.answers)}
				start := time.Now()
				f := p.start(c.text, c.chooser)
				require.NoError(t, f.Run(t.Context()))
				require.Equal(t, c.want, states(f.Routed()))
				require.Equal(t, c.took, time.Since(start))
				require.Equal(t, states(f.Routed()), states(p.kept[len(p.kept)-1]), "the last saved state is the final state")
			})
		})
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	p := &post{clients: clients("a", "b"), answer: says(map[string]string{"b": routing.Rejected, "a": routing.Acknowledged})}
	f := p.start(" b:  milk, eggs ", first(1))
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, []string{"b: milk, eggs", "a: milk, eggs"}, p.got, "the text has no name of another client")
	r := f.Routed()
	require.Equal(t, []string{"prefix ", "model of 1, after 1 rejections"},
		[]string{r.Choices[0].By + " " + r.Choices[0].Reason, r.Choices[1].By + " " + r.Choices[1].Reason})
	require.Equal(t, "b says no", r.Recipient("B").Reason)
	require.Equal(t, "asked", p.kept[0].Status, "it is saved before it is delivered")
}

func TestLateAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &post{clients: clients("a")}
		f := p.start("x", first(1))
		require.NoError(t, f.Run(t.Context()))
		require.Equal(t, []string{"refused", "a rejected"}, states(f.Routed()))
		require.Equal(t, routing.ReasonTimeout, f.Routed().Recipients[0].Reason)
		require.False(t, f.Answer("b", routing.Answer{Kind: routing.Acknowledged}), "it never got the message")
		require.True(t, f.Answer("A", routing.Answer{Kind: routing.Acknowledged}))
		require.Equal(t, []string{"taken", "a acknowledged"}, states(f.Routed()))
		f.Left("a")
		f.Answer("a", routing.Answer{Kind: routing.Rejected})
		require.Equal(t, []string{"taken", "a acknowledged"}, states(f.Routed()), "the first answer counts")
		for range 25 {
			f.Answer("a", routing.Answer{Kind: routing.Notified, Notification: &routing.Notification{Client: "a", Title: "done"}})
		}
		require.Len(t, f.Routed().Notifications, 20)
		require.Equal(t, 5, f.Routed().DroppedNotifications)
		require.Equal(t, routing.Acknowledged, f.Routed().Recipients[0].State)
	})
}

// A notification to the user is an answer, however late. A client that notifies the user and
// then rejects the message has not taken it.
func TestLateNotifications(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &post{clients: clients("a")}
		f := p.start("x", first(1))
		require.NoError(t, f.Run(t.Context()))
		require.Equal(t, []string{"refused", "a rejected"}, states(f.Routed()))
		f.Answer("a", routing.Answer{Kind: routing.Notified, Notification: &routing.Notification{Client: "a", Title: "done"}})
		require.Equal(t, []string{"taken", "a notified"}, states(f.Routed()))
		f.Answer("a", routing.Answer{Kind: routing.Rejected, Reason: "after all"})
		require.Equal(t, []string{"refused", "a rejected"}, states(f.Routed()))
		require.Equal(t, "all clients that got it rejected it", f.Routed().Reason)
		f.Answer("a", routing.Answer{Kind: routing.Notified, Notification: &routing.Notification{Client: "a", Title: "sorry"}})
		require.Equal(t, []string{"refused", "a rejected"}, states(f.Routed()), "it rejected the message itself")
		require.Len(t, f.Routed().Notifications, 2)
	})
}

// thinking chooses after a second, like a model.
type thinking struct{ routing.Chooser }

func (c thinking) Choose(ctx context.Context, q *routing.Question) (*routing.Choice, error) {
	time.Sleep(time.Second) // of the clock of synctest
	return c.Chooser.Choose(ctx, q)
}

// Two clients that time out together are replaced once, and their replacements have their full
// time.
func TestRejectionsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &post{clients: clients("a", "b", "c", "d", "e", "f")}
		f := p.start("x", thinking{first(2)})
		require.NoError(t, f.Run(t.Context()))
		var chosen [][]string
		for i, c := range f.Routed().Choices {
			chosen = append(chosen, c.Clients)
			if i > 0 {
				require.Equal(t, 31*time.Second, c.At.Sub(f.Routed().Choices[i-1].At))
			}
		}
		require.Equal(t, [][]string{{"a", "b"}, {"c", "d"}, {"e", "f"}}, chosen)
	})
}

func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	p := &post{clients: clients("a", "b"), answer: func(client string, _ *routing.Delivery, f *routing.Flight) {
		if client == "a" {
			f.Left("a")
		} else {
			f.Answer(client, routing.Answer{Kind: routing.Acknowledged})
		}
	}}
	f := p.start("x", first(1))
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, []string{"taken", "a rejected", "b acknowledged"}, states(f.Routed()))
	require.Equal(t, routing.ReasonLeft, f.Routed().Recipients[0].Reason)
}

func TestInterruptedFlights(t *testing.T) {
	t.Parallel()
	const waiting, ack, no = routing.Waiting, routing.Acknowledged, routing.Rejected
	routed := func(status string, choices [][]string, recipients ...string) routing.Routed {
		r := routing.Routed{Message: routing.Message{ID: "msg-1", Text: "x"}, Status: status}
		for _, c := range choices {
			r.Choices = append(r.Choices, routing.Chosen{By: routing.ByModel, Clients: c})
		}
		for i := 0; i < len(recipients); i += 2 {
			r.Recipients = append(r.Recipients, routing.Recipient{Client: recipients[i], State: recipients[i+1]})
		}
		return r
	}
	for _, c := range []struct {
		name string
		m    routing.Routed
		want []string
		got  []string
	}{
		{"nobody had it", routed("choosing", nil), []string{"taken", "a acknowledged"}, []string{"a: x"}},
		{"one was asked", routed("asked", [][]string{{"a"}}, "a", waiting), []string{"taken", "a rejected", "b acknowledged"}, []string{"b: x"}},
		{
			"one had rejected, the next was asked", routed("asked", [][]string{{"a"}, {"b"}}, "a", no, "b", waiting),
			[]string{"taken", "a rejected", "b rejected", "c acknowledged"}, []string{"c: x"},
		},
		{
			"all three times are used",
			routed("asked", [][]string{{"a"}, {"b"}, {"c"}, {"d"}}, "a", no, "b", no, "c", no, "d", waiting),
			[]string{"refused", "a rejected", "b rejected", "c rejected", "d rejected"}, nil,
		},
		{
			"one has taken it, one was asked", routed("taken", [][]string{{"a", "b"}}, "a", ack, "b", waiting),
			[]string{"taken", "a acknowledged", "b rejected"}, nil,
		},
		{"it was over", routed("taken", [][]string{{"a"}}, "a", ack), []string{"taken", "a acknowledged"}, nil},
		{"it was refused", routed("refused", [][]string{{"a"}}, "a", no), []string{"refused", "a rejected"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &post{clients: clients("a", "b", "c", "d", "e"), answer: says(map[string]string{"a": ack, "b": ack, "c": ack, "d": ack, "e": ack})}
			p.flight = (&routing.Router{Chooser: first(1), MaxReroutes: 3}).NewFlight(c.m, p)
			require.NoError(t, p.flight.Run(t.Context()))
			require.Equal(t, c.want, states(p.flight.Routed()))
			require.Equal(t, c.got, p.got)
		})
	}
}

func TestFlightsThatFail(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	p := &post{clients: clients("a"), fails: full}
	require.ErrorIs(t, p.start("x", first(1)).Run(t.Context()), full)
	require.Empty(t, p.got, "an unsaved message is not delivered")

	p = &post{clients: clients("a")}
	require.ErrorIs(t, p.start("x", &routing.Model{Client: &model{}}).Run(t.Context()), errDown)

	ctx, cancel := context.WithCancelCause(t.Context())
	p = &post{clients: clients("a"), answer: func(string, *routing.Delivery, *routing.Flight) { cancel(errDown) }}
	f := p.start("x", first(1))
	require.ErrorIs(t, f.Run(ctx), errDown)
	require.Equal(t, []string{"asked", "a waiting"}, states(f.Routed()))
}

// TestAnyAnswers checks the rules for all answers, in any order and at any time.
func TestAnyAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 7).Draw(t, "clients")
		at := rapid.IntRange(0, 3).Draw(t, "at once")
		names := []string{"a", "b", "c", "d", "e", "f", "g"}[:n]
		kinds := rapid.SliceOfN(rapid.SampledFrom([]string{routing.Acknowledged, routing.Rejected, routing.Notified, "left"}), n, n).Draw(t,
			"answers")
		late := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "late")
		var answering sync.WaitGroup
		p := &post{clients: clients(names...)}
		p.answer = func(client string, _ *routing.Delivery, f *routing.Flight) {
			i := slices.Index(names, client)
			do := func() {
				if kinds[i] == "left" {
					f.Left(client)
				} else {
					f.Answer(client, routing.Answer{Kind: kinds[i]})
				}
			}
			if late[i] {
				answering.Go(do)
			} else {
				do()
			}
		}
		f := p.start("x", first(at))
		require.NoError(t, f.Run(context.Background()))
		answering.Wait()
		r := f.Routed()
		require.True(t, r.IsOver(), "%v", states(r))
		require.LessOrEqual(t, r.Reroutes(), routing.DefaultReroutes)
		asked := map[string]bool{}
		for i, got := range p.got {
			require.False(t, asked[got], "nobody is asked twice")
			asked[got] = true
			require.Equal(t, r.Recipients[i].Client+": x", got)
		}
		taken := r.Has(routing.Acknowledged) || r.Has(routing.Notified)
		require.Equal(t, taken, r.Status == routing.Taken)
		require.Equal(t, len(r.Recipients) == 0, r.Status == routing.Undelivered)
	})
}
