package router_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/router"
	"waza/rpc/gateway/store"
	"waza/runner/routing"
)

// Watchers get each client and message first, and then the changes.
func TestWatch(t *testing.T) {
	t.Parallel()
	o := open(t, router.Defaults(), router.Options{})
	a := o.register("a")
	_, err := o.Messenger().Send(t.Context(), &routing.Message{ID: "msg-1", Text: "nobody fits"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan routing.Change, 100), make(chan error, 1)
	go func() { ended <- o.Messenger().Watch(ctx, func(c routing.Change) { changes <- c }) }()
	next := func(holds func(routing.Change) bool) {
		t.Helper()
		for c := range changes {
			if holds(c) {
				return
			}
		}
	}
	first := <-changes
	require.Equal(t, "a", first.Client.Name)
	require.False(t, first.Client.Gone)
	second := <-changes
	require.Equal(t, "msg-1", second.Message.ID)
	require.Equal(t, routing.Undelivered, second.Message.Status)

	o.exchange(a, "a")
	next(func(c routing.Change) bool { return c.Message != nil && c.Message.Status == routing.Taken })
	o.register("b")
	next(func(c routing.Change) bool { return c.Client != nil && c.Client.Name == "b" && !c.Client.Gone })
	require.NoError(t, a.CloseNow())
	next(func(c routing.Change) bool { return c.Client != nil && c.Client.Name == "a" && c.Client.Gone })
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// failing is a store that fails to save.
type failing struct{ store.Messages }

func (failing) Save(context.Context, string, string) error { return errors.New("the disk is full") }
func (failing) List(context.Context) ([]string, error)     { return nil, nil }

// A message that cannot be stored is not sent.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	o := open(t, router.Defaults(), router.Options{Store: failing{}})
	o.register("a")
	_, err := o.Messenger().Send(t.Context(), &routing.Message{ID: "msg-1", Text: "a: hello"})
	require.EqualError(t, err, "message msg-1 could not be stored: the disk is full")
	list, err := o.Messenger().Messages(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// A door that is off accepts no messages.
func TestOff(t *testing.T) {
	t.Parallel()
	c := router.Defaults()
	c.Listen = "off"
	s, err := router.New(c, router.Options{})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Messenger().Send(t.Context(), &routing.Message{Text: "hello"})
	require.EqualError(t, err, "the router door is off; start waza serve without --router off")
	require.NoError(t, s.Door().Shutdown(t.Context()))
}

// The defaults follow the protocol.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c := router.Defaults()
	require.Equal(t, "localhost:9473", c.Listen)
	require.Equal(t, []string{"30s", "10s", "10s", "30s"},
		[]string{c.Heartbeat.String(), c.PongTimeout.String(), c.RegisterTimeout.String(), c.ResponseTimeout.String()})
	require.Equal(t, []int{100, 3, 100, 64, 1024}, []int{c.MaxConnections, c.MaxReroutes, c.History, c.MaxNameChars, c.MaxDescriptionChars})
	require.Equal(t, int64(1<<20), c.MaxMessageBytes)
}
