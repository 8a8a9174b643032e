package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/router"
	"waza/runner/routing"
)

// opened is a server with an open door. Its store can be nil.
type opened struct {
	*testing.T
	*router.Server
	url string
}

func open(t *testing.T, c router.Config, o router.Options) *opened {
	t.Helper()
	c.Listen = "127.0.0.1:0"
	s, err := router.New(c, o)
	require.NoError(t, err)
	addr, err := s.Door().Listen()
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Door().Serve(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.Door().Shutdown(ctx))
		require.NoError(t, <-served)
		s.Close()
	})
	return &opened{t, s, "ws://" + addr.String() + "/"}
}

// dial connects a client.
func (o *opened) dial() *websocket.Conn {
	o.Helper()
	ws, _, err := websocket.Dial(o.Context(), o.url, nil)
	require.NoError(o, err)
	o.Cleanup(func() { ws.CloseNow() })
	return ws
}

// register connects and registers a client.
func (o *opened) register(name string) *websocket.Conn {
	o.Helper()
	ws := o.dial()
	o.say(ws, `{"type":"registration","payload":{"name":"`+name+`","description":"Takes anything."}}`)
	require.Contains(o, o.hear(ws), `"success":true`)
	return ws
}

func (o *opened) say(ws *websocket.Conn, text string) {
	o.Helper()
	require.NoError(o, ws.Write(o.Context(), websocket.MessageText, []byte(text)))
}

func (o *opened) hear(ws *websocket.Conn) string {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), patience)
	defer cancel()
	_, data, err := ws.Read(ctx)
	require.NoError(o, err)
	return string(data)
}

// take acknowledges the next message to a client, and returns its text.
func (o *opened) take(ws *websocket.Conn) string {
	o.Helper()
	var m struct{ Payload struct{ ID, Text string } }
	require.NoError(o, json.Unmarshal([]byte(o.hear(ws)), &m))
	o.say(ws, `{"type":"response","payload":{"messageId":"`+m.Payload.ID+`","type":"ack","payload":{}}}`)
	return m.Payload.Text
}

// exchange sends a message to a client, which acknowledges it.
func (o *opened) exchange(ws *websocket.Conn, name string) {
	o.Helper()
	done := make(chan error, 1)
	go func() {
		r, err := o.Messenger().Send(o.Context(), &routing.Message{Text: name + ": hello"})
		if err == nil && r.Status != routing.Taken {
			err = errors.New(r.Status + ": " + r.Reason)
		}
		done <- err
	}()
	require.Equal(o, "hello", o.take(ws))
	require.NoError(o, <-done)
}

// Requests from other machines get 403 on any address. The door does not listen on addresses of
// other machines.
func TestAttackFromAfar(t *testing.T) {
	t.Parallel()
	o := open(t, router.Defaults(), router.Options{})
	for _, address := range []string{"192.0.2.1:1234", "[2001:db8::1]:1234", "[::ffff:192.0.2.1]:1234", "unix", ""} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = address
		router.Handle(o.Server, w, r)
		require.Equal(t, http.StatusForbidden, w.Code, address)
	}
	for _, listen := range []string{"0.0.0.0:0", "[::]:0"} {
		c := router.Defaults()
		c.Listen, c.Insecure = listen, true
		_, err := router.New(c, router.Options{})
		require.ErrorContains(t, err, "clients of the router cannot authenticate, so listen on localhost")
	}
}

// Clients that flood the door with responses, invalid and large messages do not delay others for
// long, and no answer is lost.
func TestAttackFlood(t *testing.T) {
	t.Parallel()
	c := router.Defaults()
	c.MessagesPerMinute = 100
	o := open(t, c, router.Options{})
	good := o.register("good")
	for i := range 5 {
		name := fmt.Sprintf("bad-%d", i)
		bad := o.register(name)
		go func() {
			for _, text := range []string{
				`{"type":"response","payload":{"messageId":"msg-unknown","type":"ack","payload":{}}}`, `{"type":"registration"}`, "nonsense",
				`{"type":"response","payload":"` + strings.Repeat("x", 1<<19) + `"}`,
			} {
				for range 200 {
					if bad.Write(t.Context(), websocket.MessageText, []byte(text)) != nil {
						return
					}
				}
			}
		}()
	}
	for range 20 {
		o.exchange(good, "good")
	}
}

// A client that exceeds its rate limit is slowed down, and its answers still count.
func TestAttackBeyondTheRate(t *testing.T) {
	t.Parallel()
	c := router.Defaults()
	c.MessagesPerMinute = 5
	o := open(t, c, router.Options{})
	ws := o.register("talkative")
	for range 8 {
		o.say(ws, "nonsense")
	}
	o.exchange(ws, "talkative")
}

// Clients that never register cannot keep others out.
func TestAttackStrangers(t *testing.T) {
	t.Parallel()
	c := router.Defaults()
	c.MaxUnidentified = 8
	o := open(t, c, router.Options{})
	for range 8 {
		o.dial()
	}
	o.exchange(o.register("late"), "late") // takes the place of the oldest unregistered one
}

// A client that does not read is disconnected when its queue is full. That rejects its
// unanswered messages.
func TestAttackSlowReader(t *testing.T) {
	t.Parallel()
	c := router.Defaults()
	c.SendQueueBytes = 1 << 20
	c.ResponseTimeout = 0
	o := open(t, c, router.Options{})
	o.register("mute")
	text := "mute: " + strings.Repeat("x", 60_000)
	outcome := make(chan *routing.Routed, 500)
	go func() {
		for range cap(outcome) { // more than the queue and the system's buffers can hold
			r, err := o.Messenger().Post(t.Context(), &routing.Message{Text: text})
			if err != nil {
				return
			}
			go func() {
				r, err := o.Messenger().Send(t.Context(), &routing.Message{ID: r.ID, Text: text})
				if err == nil {
					outcome <- r
				}
			}()
		}
	}()
	select {
	case r := <-outcome:
		require.Contains(t, []string{routing.Refused, routing.Undelivered}, r.Status)
	case <-time.After(patience):
		t.Fatal("the client is still connected")
	}
}

// The number of active messages is limited.
func TestAttackMessages(t *testing.T) {
	t.Parallel()
	o := open(t, router.Defaults(), router.Options{})
	o.register("slow")
	for range 1000 {
		_, err := o.Messenger().Post(t.Context(), &routing.Message{Text: "slow: hello"})
		require.NoError(t, err)
	}
	_, err := o.Messenger().Post(t.Context(), &routing.Message{Text: "slow: hello"})
	require.ErrorContains(t, err, "too many messages: 1000 are being delivered; try again later")
}
