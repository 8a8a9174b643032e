package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval/jsonwalk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const probe = `{"jsonrpc":"2.0","id":"probe","method":"ping"}` + "\n"
const probed = `{"jsonrpc":"2.0","id":"probe","result":"pong"}`

// handler serves a few methods like package rpc: quick ones directly, "slow" in a goroutine that
// waits until the input has ended.
type handler struct {
	s     *Stream
	eof   <-chan struct{}
	extra func(ctx context.Context, s *Stream, req *jsonrpc2.Request) (handled bool)
}

func (h handler) Handle(ctx context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	switch {
	case h.extra != nil && h.extra(ctx, h.s, req):
	case req.Method == "slow":
		go func() {
			<-h.eof
			reply(h.s, req, "slow done")
		}()
	default:
		reply(h.s, req, "")
	}
}

func reply(s *Stream, req *jsonrpc2.Request, result any) {
	fault := (*Error)(nil)
	switch req.Method {
	case "ping":
		result = "pong"
	case "null":
		result = nil
	case "echo":
		result = req.Params
	case "get_data":
		result = []any{"hello", 5}
	case "sum", "subtract":
		result = arithmetic(req)
	case "slow", "update", "notify_hello", "notify_sum":
	default:
		fault = &Error{Code: CodeMethodNotFound, Message: "Method not found"}
	}
	switch {
	case req.Notif:
	case fault != nil:
		s.Reply(req.ID, nil, fault)
	default:
		answer(s, req.ID, result)
	}
}

// answer replies to a request with a result.
func answer(s *Stream, id jsonrpc2.ID, result any) error {
	raw, err := jsonwalk.Encode(result)
	if err != nil {
		return err
	}
	return s.Reply(id, raw, nil)
}

func arithmetic(req *jsonrpc2.Request) int {
	if req.Params == nil {
		return 0
	}
	var list []int
	if json.Unmarshal(*req.Params, &list) != nil {
		var named struct{ Minuend, Subtrahend int }
		if json.Unmarshal(*req.Params, &named) != nil {
			return 0
		}
		list = []int{named.Minuend, named.Subtrahend}
	}
	total := 0
	for i, n := range list {
		if req.Method == "subtract" && i > 0 {
			n = -n
		}
		total += n
	}
	return total
}

// eofReader closes eof when its reader reaches the end.
type eofReader struct {
	io.Reader
	once sync.Once
	eof  chan struct{}
}

func (r *eofReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.once.Do(func() { close(r.eof) })
	}
	return n, err
}

func (r *eofReader) Close() error {
	closeIt(r.Reader)
	return nil
}

// A transport makes both ends of a connection whose directions close separately.
type transport func(t *testing.T) (serverIn io.Reader, serverOut io.Writer, clientOut io.WriteCloser, clientIn io.Reader)

var transports = map[string]transport{
	"ioPipe":  ioPipe,
	"bytes":   byteAtATime,
	"netPipe": netPipe,
	"osPipe":  osPipe,
	"tcp":     tcp,
}

func ioPipe(*testing.T) (io.Reader, io.Writer, io.WriteCloser, io.Reader) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return r1, w2, w1, r2
}

func byteAtATime(t *testing.T) (io.Reader, io.Writer, io.WriteCloser, io.Reader) {
	r, w, cw, cr := ioPipe(t)
	return iotest.OneByteReader(r), w, cw, cr
}

func netPipe(*testing.T) (io.Reader, io.Writer, io.WriteCloser, io.Reader) {
	r1, w1 := net.Pipe()
	r2, w2 := net.Pipe()
	return r1, w2, w1, r2
}

func osPipe(t *testing.T) (io.Reader, io.Writer, io.WriteCloser, io.Reader) {
	r1, w1, err := os.Pipe()
	require.NoError(t, err)
	r2, w2, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r2.Close() })
	return r1, w2, w1, r2
}

// halfClose closes only the sending direction.
type halfClose struct{ *net.TCPConn }

func (c halfClose) Close() error { return c.CloseWrite() }

func tcp(t *testing.T) (io.Reader, io.Writer, io.WriteCloser, io.Reader) {
	server, client := tcpPair(t)
	return server, server, halfClose{client}, client
}

func tcpPair(t testing.TB) (server, client *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	s, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

// talk sends all of in, closes the input, and returns every output line until the server closes.
func talk(t *testing.T, tr transport, opts Options, in io.Reader) []string {
	t.Helper()
	out, _, err := session(t, tr, opts, in)
	require.Equal(t, ErrClosed, err)
	return out
}

func session(t *testing.T, tr transport, opts Options, in io.Reader) ([]string, *Stream, error) {
	t.Helper()
	r, w, cw, cr := tr(t)
	er := &eofReader{Reader: r, eof: make(chan struct{})}
	s := NewStream(er, w, opts)
	c := s.Connect(t.Context(), handler{s: s, eof: er.eof})
	go func() {
		io.Copy(cw, in)
		cw.Close()
	}()
	data, err := io.ReadAll(cr)
	require.NoError(t, err)
	<-c.DisconnectNotify()
	<-s.Done()
	return lines(data), s, s.Err()
}

func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// simplify returns a reply with its members in order and without error data, which must be an
// object.
func simplify(t testing.TB, line string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(line))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v), "%.200q", line)
	require.False(t, dec.More(), "%.200q", line)
	for _, reply := range asList(v) {
		m, ok := reply.(map[string]any)
		require.True(t, ok, "%.200q", line)
		if e, ok := m["error"].(map[string]any); ok {
			if data, has := e["data"]; has {
				require.IsType(t, map[string]any{}, data)
				delete(e, "data")
			}
		}
	}
	out, err := jsonwalk.Encode(v)
	require.NoError(t, err)
	return string(out)
}

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func simplifyAll(t testing.TB, in []string) []string {
	var out []string
	for _, line := range in {
		out = append(out, simplify(t, line))
	}
	return out
}

// A peer is a client that a test controls step by step, over os.Pipe.
type peer struct {
	*testing.T
	s    *Stream
	conn *jsonrpc2.Conn
	out  io.WriteCloser
	in   io.Reader
	scan *bufio.Reader
}

func newPeer(t *testing.T, opts Options, extra func(context.Context, *Stream, *jsonrpc2.Request) bool) *peer {
	r, w, cw, cr := osPipe(t)
	p := &peer{T: t, out: cw, in: cr, scan: bufio.NewReader(cr)}
	er := &eofReader{Reader: r, eof: make(chan struct{})}
	p.s = NewStream(er, w, opts)
	p.conn = p.s.Connect(t.Context(), handler{s: p.s, eof: er.eof, extra: extra})
	t.Cleanup(func() {
		cw.Close()
		p.conn.Close()
		<-p.s.Done()
	})
	return p
}

func (p *peer) send(lines ...string) {
	p.Helper()
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	_, err := p.out.Write(b.Bytes())
	require.NoError(p, err)
}

func (p *peer) line() string {
	p.Helper()
	line, err := p.scan.ReadString('\n')
	require.NoError(p, err)
	return strings.TrimSuffix(line, "\n")
}
