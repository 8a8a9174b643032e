package rpc_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
	"waza/runner/proc/proctest"
	"waza/runner/record"
)

// A subscriber reads the notifications of a run and loses its connection now and then. Only one
// goroutine uses it, which need not be that of the test.
type subscriber struct {
	runID string
	doors []net.Addr // addresses of daemons with the same state directory
	rand  *rand.Rand
	seen  []int64 // in order of arrival
	last  string  // method of the last one
	lost  int     // number of lost connections
}

// connect opens a connection to one of the daemons and subscribes from the event after the last
// one received.
func (s *subscriber) connect() (net.Conn, *bufio.Reader, error) {
	addr := s.doors[s.rand.IntN(len(s.doors))]
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return nil, nil, err
	}
	from := int64(1)
	if len(s.seen) > 0 {
		from = s.seen[len(s.seen)-1] + 1
	}
	err = conn.SetDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":"run.subscribe","params":{"runId":%q,"fromSeq":%d}}`+"\n", s.runID, from)
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, bufio.NewReader(conn), nil
}

// follow reads up to eval.complete.
func (s *subscriber) follow() error {
	for s.last != "eval.complete" {
		if err := s.some(20 + s.rand.IntN(100)); err != nil {
			return err
		}
	}
	return nil
}

// some reads up to n notifications from a new connection.
func (s *subscriber) some(n int) error {
	conn, lines, err := s.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	for n > 0 && s.last != "eval.complete" {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("after %d events: %w", len(s.seen), err)
		}
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return err
		}
		switch {
		case m.Error != nil:
			return errors.New(m.Error.Message)
		case m.ID == nil:
			s.seen, s.last = append(s.seen, m.Params.Seq), m.Method
			n--
		}
	}
	s.lost++
	return nil
}

// A client that loses its connection during a run and subscribes again with the last number it
// received gets every later event exactly once, from the same daemon or another process. A
// client that never reads does not disturb the others.
func TestResubscribe(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	require.NoError(t, err)
	addr := listen(t, newServer(t, rpc.Options{Runner: r}))
	socket := filepath.Join(proctest.ShortDir(t), "s")
	other := spawn(t, state, socket)
	require.Eventually(t, func() bool { return strings.Contains(other.stderr.String(), "listening") }, patience, 5*time.Millisecond)
	elsewhere := &net.UnixAddr{Name: socket, Net: "unix"}

	owner := dial(t, addr)
	text := strings.Replace(many(8, 40, 4), "config:\n", "config:\n  mock: {latency_ms: 5}\n", 1)
	id := owner.start(map[string]any{"path": suite(t, text)})

	const readers = 20
	silent := &subscriber{runID: id, doors: []net.Addr{addr}, rand: rand.New(rand.NewPCG(0, 0))}
	conn, _, err := silent.connect()
	require.NoError(t, err)
	defer conn.Close()
	subscribers := make([]*subscriber, readers-1)
	done := make(chan error)
	for i := range subscribers {
		doors := [][]net.Addr{{addr}, {addr, elsewhere}, {elsewhere}}[i%3]
		subscribers[i] = &subscriber{runID: id, doors: doors, rand: rand.New(rand.NewPCG(uint64(i), 1))}
		go func() { done <- subscribers[i].follow() }()
	}
	for range subscribers {
		require.NoError(t, <-done)
	}
	consecutive(t, 1, owner.follow(id))
	h, err := r.Catalog().Run(id)
	require.NoError(t, err)
	want := lastSeq(t, h)
	for i, s := range subscribers {
		require.EqualValues(t, want, len(s.seen), "subscriber %d, %d connections", i, s.lost)
		for j, seq := range s.seen {
			require.EqualValues(t, j+1, seq, "subscriber %d", i)
		}
		require.Greater(t, s.lost, 2, "the subscriber never lost its connection")
	}
}

// lastSeq returns the number of a run's last event.
func lastSeq(t *testing.T, h record.Handle) (last int64) {
	t.Helper()
	sub := h.Subscribe(1)
	for {
		events, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return last
		}
		require.NoError(t, err)
		last = events[len(events)-1].Seq
	}
}
