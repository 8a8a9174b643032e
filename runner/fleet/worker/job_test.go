package worker

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet"
	"waza/runner/fleet/seal"
)

// message is a delivered message.
type message struct {
	jetstream.Msg
	subject string
	data    []byte
}

func (m message) Subject() string      { return m.subject }
func (m message) Data() []byte         { return m.data }
func (m message) Headers() nats.Header { return nats.Header{} }

// Orders come from strangers, so invalid ones are refused. A worker that shuts down while it
// reports a refusal does not panic.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	trust, err := seal.ReadTrust(newKey(t))
	require.NoError(t, err)
	names := fleet.NamesOf("red")
	good := fleet.Order{
		Terms:   fleet.Terms{Protocol: fleet.Protocol, Run: "20260101-000000.000-a", Expires: time.Now().Add(time.Hour)},
		Request: fleet.Request{ID: "1-1-x", Task: 1, Num: 1},
	}
	subject := names.Order("any", good.Run, good.ID)
	for name, c := range map[string]struct {
		change  func(*fleet.Order)
		subject string
		trust   *seal.Trust
		want    string
		known   bool
	}{
		"version":       {func(o *fleet.Order) { o.Protocol++ }, subject, nil, "protocol version must be 1, got 2", false},
		"id":            {func(o *fleet.Order) { o.ID = "a.b" }, subject, nil, "invalid run", false},
		"task":          {func(o *fleet.Order) { o.Task = 0 }, subject, nil, "must be at least 1", false},
		"different run": {func(o *fleet.Order) { o.Run = "other" }, subject, nil, "does not match the subject", false},
		"different team": {
			func(*fleet.Order) {}, fleet.NamesOf("blue").Order("any", good.Run, good.ID), nil,
			"does not match the subject", false,
		},
		"short subject":  {func(*fleet.Order) {}, "waza.red", nil, "does not match the subject", false},
		"expired":        {func(o *fleet.Order) { o.Expires = time.Now().Add(-time.Hour) }, subject, nil, "expired at", true},
		"without a seal": {func(*fleet.Order) {}, subject, trust, "not trusted", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(Options{Slots: 1, Trust: c.trust})
			w.place = &fleet.Place{Names: names}
			o := good
			c.change(&o)
			data, err := json.Marshal(&o)
			require.NoError(t, err)
			j, err := w.open(message{subject: c.subject, data: data})
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.known, j != nil)
			if j != nil {
				w.jobs.add(j)
				w.jobs.giveUp()
			}
		})
	}
	w := New(Options{Slots: 1})
	w.place = &fleet.Place{Names: names}
	_, err = w.open(message{subject: subject, data: []byte("{")})
	require.ErrorContains(t, err, "invalid JSON")
}

func newKey(t *testing.T) string {
	t.Helper()
	public, err := seal.NewKey(t.TempDir() + "/key")
	require.NoError(t, err)
	return public
}

// The earliest waiter gets the next slot. A waiter for all slots gets every free one.
func TestSlots(t *testing.T) {
	t.Parallel()
	s := newSlots(3)
	n, err := s.take(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	one, all := make(chan int), make(chan int)
	wait := func(got chan int, every bool) {
		before := waiting(s)
		go func() {
			n, _ := s.take(t.Context(), every)
			got <- n
		}()
		require.Eventually(t, func() bool { return waiting(s) > before }, time.Minute, time.Millisecond)
	}
	wait(one, false)
	wait(all, true)
	s.free(3)
	require.Equal(t, 1, <-one)
	require.Equal(t, 2, <-all)
	s.end()
	s.free(2)
	select {
	case <-s.idle():
		t.Fatal("a slot is taken")
	default:
	}
	s.assign()
	s.done()
	<-s.idle()
}

func waiting(s *slots) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// FuzzOpen asserts that no message makes a worker panic, and that accepted orders match their
// subject.
func FuzzOpen(f *testing.F) {
	names := fleet.NamesOf("red")
	f.Add(names.Order("any", "r", "1-1-x"), []byte(`{"protocol":1,"run":"r","id":"1-1-x","task":1,"num":1,"expires":"2999-01-01T00:00:00Z"}`))
	f.Add("", []byte(`null`))
	w := New(Options{Slots: 1})
	w.place = &fleet.Place{Names: names}
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		j, err := w.open(message{subject: subject, data: data})
		if err == nil && (names.Order(classIn(subject), j.Run, j.ID) != subject || j.Task < 1 || j.Num < 1) {
			t.Errorf("%q was accepted: %s", subject, data)
		}
	})
}
