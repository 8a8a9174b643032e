package wire

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/require"
)

// bodyStream connects a stream that replies to requests with a body of size bytes, a JSON
// string.
func bodyStream(t *testing.T, all *Bodies, size int) (s *Stream, in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	r, in := io.Pipe()
	out, w := io.Pipe()
	s = NewStream(r, w, Options{})
	conn := s.Connect(t.Context(), handler{s: s, extra: func(_ context.Context, _ *Stream, req *jsonrpc2.Request) bool {
		if req.Method != "large" {
			return false
		}
		b, err := all.New()
		if err == nil {
			_, err = io.WriteString(b, `"`+strings.Repeat("x", size-3)+"\n"+`"`)
		}
		second, secondErr := all.New() // after the reply, the test may be over
		if err := errors.Join(err, secondErr); err != nil {
			t.Error(err)
			return false
		}
		if err := s.ReplyBody(req.ID, b); err != nil {
			t.Error(err)
		}
		if s.ReplyBody(req.ID, second) == nil {
			t.Error("the request got two replies")
		}
		return true
	}})
	t.Cleanup(func() { conn.Close(); <-conn.DisconnectNotify() })
	return s, in, out
}

func large(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"large"}` }

// Large replies waited for their clients in memory.
func TestAttackLargeRepliesWaitInFiles(t *testing.T) {
	t.Parallel()
	const size = 200_000
	result := `"` + strings.Repeat("x", size-3) + ` "`
	for name, c := range map[string]struct{ in, out string }{
		"line": {large("1") + "\n" + ping("2"), `{"jsonrpc":"2.0","id":1,"result":` + result + "}\n" + pong("2")[0] + "\n"},
		"batch": {
			"[" + large("1") + "," + strings.TrimSpace(ping("2")) + "," + large("3") + "]\n",
			`[{"jsonrpc":"2.0","id":1,"result":` + result + "}," + pong("2")[0] + `,{"jsonrpc":"2.0","id":3,"result":` + result + "}]\n",
		},
		"framed": {framed(large("1")), framed(`{"jsonrpc":"2.0","id":1,"result":` + result + "}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			all := NewBodies(dir, 1<<20)
			s, in, out := bodyStream(t, all, size)
			go func() {
				_, _ = io.WriteString(in, c.in)
				in.Close()
			}()
			first := make([]byte, 1) // the reply is queued
			_, err := io.ReadFull(out, first)
			require.NoError(t, err)
			require.GreaterOrEqual(t, s.Queued(), size, "the reply counts as unread output")
			require.GreaterOrEqual(t, all.used.Load(), int64(size))
			rest, err := io.ReadAll(out)
			require.NoError(t, err)
			require.True(t, c.out == string(first)+string(rest), "%.100s", rest)
			require.Zero(t, all.used.Load())
			names, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, names, "no file remains")
		})
	}
}

// Unread output is freed when the client disconnects, and its total size is limited.
func TestUnreadRepliesAreFreed(t *testing.T) {
	t.Parallel()
	all := NewBodies(t.TempDir(), 250_000)
	s, in, out := bodyStream(t, all, 100_000)
	_, err := io.WriteString(in, "["+large("1")+","+large("2")+"]\n")
	require.NoError(t, err)
	_, err = io.ReadFull(out, make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, int64(200_000), all.used.Load())
	b, err := all.New()
	require.NoError(t, err)
	_, err = b.Write(make([]byte, 60_000))
	require.ErrorIs(t, err, ErrBodies)
	b.Close()
	s.Fail(io.ErrClosedPipe)
	out.Close()
	<-s.written
	require.Zero(t, all.used.Load())
}
