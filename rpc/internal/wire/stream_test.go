package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/require"
)

// held returns a handler's extra that passes requests to "hold" to the test.
func held() (func(context.Context, *Stream, *jsonrpc2.Request) bool, chan *jsonrpc2.Request) {
	c := make(chan *jsonrpc2.Request, 1000)
	return func(_ context.Context, _ *Stream, req *jsonrpc2.Request) bool {
		if req.Method != "hold" && req.Method != "$/cancelRequest" {
			return false
		}
		c <- req
		return true
	}, c
}

func hold(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"hold"}` }

// Output after a reply follows the whole batch that contains the reply.
func TestRepliedInBatch(t *testing.T) {
	t.Parallel()
	extra, reqs := held()
	p := newPeer(t, Options{}, extra)
	p.send("[" + hold("1") + "," + hold("2") + "]")
	one, two := <-reqs, <-reqs
	replied := p.s.Replied(one.ID)
	require.NoError(t, answer(p.s, one.ID, "first"))
	select {
	case <-replied:
		t.Fatal("replied before the batch is complete")
	default:
	}
	last := p.s.Replied(two.ID)
	require.NoError(t, answer(p.s, two.ID, "second"))
	<-replied
	<-last
	require.NoError(t, p.s.Notify(t.Context(), "after", nil))
	require.Equal(t, `[{"jsonrpc":"2.0","id":1,"result":"first"},{"jsonrpc":"2.0","id":2,"result":"second"}]`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","method":"after"}`, p.line())
	<-p.s.Replied(one.ID)        // answered long ago
	<-p.s.Replied(jsonrpc2.ID{}) // the id of notifications
}

// The end of the stream releases goroutines that wait for a reply, even if the reply is ready
// and its batch is not complete.
func TestRepliedAtTheEnd(t *testing.T) {
	t.Parallel()
	extra, reqs := held()
	p := newPeer(t, Options{}, extra)
	p.send("["+hold("1")+","+hold("2")+"]", hold("3"))
	one, two, three := <-reqs, <-reqs, <-reqs
	gates := []<-chan struct{}{p.s.Replied(one.ID), p.s.Replied(two.ID), p.s.Replied(three.ID)}
	require.NoError(t, answer(p.s, one.ID, 1))
	p.conn.Close()
	for _, g := range gates {
		<-g
	}
	<-p.s.Replied(two.ID)
	require.ErrorIs(t, answer(p.s, two.ID, 2), ErrClosed)
}

func TestLookup(t *testing.T) {
	t.Parallel()
	extra, reqs := held()
	p := newPeer(t, Options{}, extra)
	p.send(hold(`"a"`), hold("1"), hold(`"a"`), hold("null"))
	a1, one, a2, null := <-reqs, <-reqs, <-reqs, <-reqs
	for id, want := range map[string][]jsonrpc2.ID{
		`"a"`: {a1.ID, a2.ID}, `"\u0061"`: {a1.ID, a2.ID}, `1`: {one.ID}, `null`: {null.ID}, `"1"`: nil, `2`: nil, ``: nil, `"`: nil,
	} {
		require.Equal(t, want, p.s.Lookup(json.RawMessage(id)), id)
	}
	require.NoError(t, answer(p.s, a1.ID, 1))
	require.Equal(t, []jsonrpc2.ID{a2.ID}, p.s.Lookup(json.RawMessage(`"a"`)))
}

func TestBusyInFlight(t *testing.T) {
	t.Parallel()
	extra, reqs := held()
	p := newPeer(t, Options{MaxInFlight: 3}, extra)
	p.send(hold("1"), hold("2"), hold("3"), hold("4"))
	require.Contains(t, p.line(), `"id":4,"error":{"code":-32005,`)
	p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}`)
	one := <-reqs
	<-reqs
	<-reqs
	cancel := <-reqs
	require.True(t, cancel.Notif)
	require.Equal(t, `{"id":2}`, string(*cancel.Params))
	require.NoError(t, answer(p.s, one.ID, nil))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":null}`, p.line())
	p.send(ping("5"))
	require.Equal(t, pong("5")[0], p.line())
}

// Requests in flight keep their messages, so a few large ones make the stream busy.
func TestBusyBytes(t *testing.T) {
	t.Parallel()
	extra, reqs := held()
	p := newPeer(t, Options{MaxInFlightBytes: 3000}, extra)
	big := `{"jsonrpc":"2.0","id":1,"method":"hold","params":["` + strings.Repeat("x", 1200) + `"]}`
	p.send(big, big, big)
	require.Contains(t, p.line(), "-32005")
	require.Len(t, reqs, 2)
	require.NoError(t, answer(p.s, (<-reqs).ID, nil))
	p.line()
	p.send(big)
	<-reqs
	<-reqs
}

// A small member does not keep its large message in memory. Like every test that measures
// memory, this test is not parallel.
func TestDetach(t *testing.T) {
	const size = 6 << 20
	for name, in := range map[string]string{
		"batch":  "[" + hold("1") + `,{"jsonrpc":"2.0","method":"update","params":["` + strings.Repeat("x", size) + `"]}]`,
		"blanks": strings.Repeat(" ", size) + hold("1"),
	} {
		t.Run(name, func(t *testing.T) {
			extra, reqs := held()
			p := newPeer(t, Options{}, extra)
			before := heap()
			var kept []*jsonrpc2.Request
			for range 4 {
				p.send(in)
				kept = append(kept, <-reqs)
			}
			p.sync()
			require.Less(t, heap(), before+2*size)
			runtime.KeepAlive(kept)
		})
	}
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The requests of a client that sends and never reads are first refused and then no longer read.
// Its notifications arrive while requests are refused, and memory stays bounded. Once it reads,
// it gets a reply to everything.
func TestNeverReads(t *testing.T) {
	before := heap()
	extra, reqs := held()
	p := newPeer(t, Options{}, extra)
	const enough = 9_000 // exceeds MaxQueued by about 1,000 refusals
	const more = 10_000  // exceeds the limit of refusals
	params := `["` + strings.Repeat("x", 1000) + `"]`
	one := `{"jsonrpc":"2.0","id":1,"method":"echo","params":` + params + "}\n"
	thousand := strings.TrimSpace(strings.Repeat(one, 1000))
	for range enough / 1000 {
		p.send(thousand)
	}
	p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest"}`)
	<-reqs
	var sent sync.WaitGroup
	sent.Go(func() {
		for range more / 1000 {
			p.send(thousand)
		}
		p.out.Close()
	})
	paused := func() bool { return p.s.own >= maxOwnQueued }
	require.NoError(t, p.s.wait(t.Context(), paused))
	limit := p.s.opts.MaxQueued + maxOwnQueued + 4096
	p.s.mu.Lock()
	queued := p.s.queued
	p.s.mu.Unlock()
	require.Less(t, queued, limit)
	require.Less(t, heap(), before+40<<20)

	data, err := io.ReadAll(p.in)
	require.NoError(t, err)
	sent.Wait()
	got := lines(data)
	require.Len(t, got, enough+more)
	refused := 0
	for _, l := range got {
		if strings.Contains(l, "-32005") {
			refused++
		} else {
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+params+`}`, l)
		}
	}
	require.NotZero(t, refused)
}

// A client that is merely slower than its many requests is not refused.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	p := newPeer(t, Options{MaxQueued: 2000}, nil)
	const n = 5000
	go func() {
		for i := range n {
			io.WriteString(p.out, ping(fmt.Sprint(i)))
		}
	}()
	for i := range n {
		require.Equal(t, pong(fmt.Sprint(i))[0], p.line())
	}
}

func TestNotifyBlocks(t *testing.T) {
	t.Parallel()
	p := newPeer(t, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var queued atomic.Int64
	failed := make(chan error)
	go func() {
		for {
			if err := p.s.Notify(ctx, "eval.log", map[string]any{"message": "<b>"}); err != nil {
				failed <- err
				return
			}
			queued.Add(1)
		}
	}()
	full := func() bool { return p.s.queued >= p.s.opts.NotifyQueued }
	require.NoError(t, p.s.wait(t.Context(), full))
	p.send(ping("1")) // still served
	require.NoError(t, p.s.wait(t.Context(), func() bool { return p.s.lastID == 1 && len(p.s.pending) == 0 }))
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	counts := map[string]int{}
	for range queued.Load() + 1 {
		counts[p.line()]++
	}
	require.Equal(t, map[string]int{
		`{"jsonrpc":"2.0","method":"eval.log","params":{"message":"<b>"}}`: int(queued.Load()),
		pong("1")[0]: 1,
	}, counts)
	require.NoError(t, p.s.Notify(t.Context(), "x", []int{1}))
	require.Equal(t, `{"jsonrpc":"2.0","method":"x","params":[1]}`, p.line())
}

func TestWrongReplies(t *testing.T) {
	t.Parallel()
	extra, reqs := held()
	p := newPeer(t, Options{}, extra)
	p.send(hold("1"), hold("2"), hold("3"), hold("4"), hold("5"))
	one, two, three, four, five := <-reqs, <-reqs, <-reqs, <-reqs, <-reqs
	require.NoError(t, answer(p.s, one.ID, 1))
	require.ErrorContains(t, answer(p.s, one.ID, 1), "not in flight")
	require.ErrorContains(t, answer(p.s, jsonrpc2.ID{Str: "2", IsString: true}, 1), "not in flight")
	require.ErrorContains(t, p.s.Reply(two.ID, json.RawMessage(`{"a":`), nil), "not JSON")
	require.NoError(t, p.s.Reply(three.ID, json.RawMessage("{\n\t\"a<\": \"\xff\"\r\n}\n"), nil))
	require.NoError(t, p.s.Reply(four.ID, nil, &Error{Code: 1, Message: "<\n>", Data: map[string]any{"why": "<"}}))
	require.NoError(t, p.s.Reply(five.ID, nil, nil))
	require.ErrorContains(t, p.conn.Notify(t.Context(), "x", nil), "methods of Stream")

	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":1}`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error"}}`, p.line())
	require.Equal(t, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{ \t\"a<\": \"\ufffd\"  }}", p.line())
	require.Equal(t, `{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"<\n>","data":{"why":"<"}}}`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","id":5,"result":null}`, p.line())
}

// The next write detects that the client is gone, and the input is closed.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	r, w, cw, cr := osPipe(t)
	s := NewStream(r, w, Options{})
	c := s.Connect(t.Context(), handler{s: s})
	cr.(*os.File).Close()
	require.NoError(t, s.Notify(t.Context(), "x", nil))
	<-s.Done()
	require.ErrorContains(t, s.Err(), "broken pipe")
	require.Error(t, s.Notify(t.Context(), "x", nil))
	<-c.DisconnectNotify() // the reader was released, although cw is open
	require.NoError(t, cw.Close())
	require.ErrorContains(t, s.Err(), "broken pipe")
}

func TestFail(t *testing.T) {
	t.Parallel()
	p := newPeer(t, Options{}, nil)
	gone := errors.New("process 1 is gone")
	p.s.Fail(gone)
	p.s.Fail(errors.New("again"))
	<-p.conn.DisconnectNotify()
	require.Equal(t, gone, p.s.Err())
}

func TestWriteTimeout(t *testing.T) {
	t.Parallel()
	server, client := tcpPair(t)
	s := NewStream(server, server, Options{WriteTimeout: 20 * time.Millisecond})
	c := s.Connect(t.Context(), handler{s: s})
	var err error
	for err == nil {
		err = s.Notify(t.Context(), "x", []string{strings.Repeat("x", 1<<20)})
	}
	require.ErrorIs(t, s.Err(), os.ErrDeadlineExceeded)
	<-c.DisconnectNotify()
	client.Close()
}

// The client's runs finish between the end of its input and the end of the stream.
func TestOnEOF(t *testing.T) {
	t.Parallel()
	var s *Stream
	ready := make(chan struct{})
	opts := Options{OnEOF: func(ctx context.Context) {
		<-ready
		s.Notify(ctx, "eval.complete", nil)
	}}
	r, w, cw, cr := tcp(t)
	er := &eofReader{Reader: r, eof: make(chan struct{})}
	s = NewStream(er, w, opts)
	close(ready)
	s.Connect(t.Context(), handler{s: s, eof: er.eof})
	io.WriteString(cw, slow("1"))
	cw.Close()
	data, err := io.ReadAll(cr)
	require.NoError(t, err)
	require.Equal(t, []string{slowDone("1"), `{"jsonrpc":"2.0","method":"eval.complete"}`}, lines(data))
	<-s.Done()
	require.Equal(t, ErrClosed, s.Err())
}

// A handler that never replies delays the end by at most DrainTimeout.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w, cw, cr := ioPipe(t)
		s := NewStream(r, w, Options{})
		begin := time.Now()
		s.Connect(t.Context(), handler{
			s:     s,
			eof:   make(chan struct{}),
			extra: func(context.Context, *Stream, *jsonrpc2.Request) bool { return true },
		})
		io.WriteString(cw, ping("1"))
		cw.Close()
		data, err := io.ReadAll(cr)
		require.NoError(t, err)
		require.Empty(t, data)
		<-s.Done()
		require.Equal(t, time.Minute, time.Since(begin))
	})
}

// Close waits a limited time until queued output is written.
func TestCloseFlushes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w, _, cr := ioPipe(t)
		s := NewStream(r, w, Options{})
		c := s.Connect(t.Context(), handler{s: s})
		require.NoError(t, s.Notify(t.Context(), "bye", nil))
		go c.Close()
		data, err := io.ReadAll(cr)
		require.NoError(t, err)
		require.Equal(t, []string{`{"jsonrpc":"2.0","method":"bye"}`}, lines(data))

		r, w, _, _ = ioPipe(t)
		s = NewStream(r, w, Options{})
		c = s.Connect(t.Context(), handler{s: s})
		require.NoError(t, s.Notify(t.Context(), "bye", nil))
		begin := time.Now()
		c.Close()
		require.Equal(t, time.Second, time.Since(begin))
		require.NoError(t, s.Close())
	})
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	r, w, _, _ := netPipe(t)
	s := NewStream(r, w, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	s.Connect(ctx, handler{s: s})
	cancel()
	<-s.Done()
	require.Equal(t, ErrClosed, s.Err())
}

func TestSetMaxLine(t *testing.T) {
	t.Parallel()
	p := newPeer(t, Options{MaxLine: MaxLineBeforeAuth}, nil)
	p.send(padded(MaxLineBeforeAuth + 1))
	require.Contains(t, p.line(), "-32600")
	p.sync()
	p.s.SetMaxLine(0)
	p.send(padded(DefaultMaxLine))
	require.Equal(t, pong("1")[0], p.line())
}

// sync waits until the reader has received all sent messages.
func (p *peer) sync() {
	p.send(ping("0"))
	require.Equal(p, pong("0")[0], p.line())
}
