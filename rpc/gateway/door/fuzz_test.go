package door_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

// For any input, a client gets well-formed frames, at most one of them a close frame and no
// message after it. The connection ends when the client leaves.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(frame(0x81, 2, "hi"))
	f.Add(append(frame(0x89, 4, "ping"), frame(0x82, 1, "x")...))
	f.Add(append(frame(0x01, 2, "on"), frame(0x80, 1, "e")...))
	f.Add(append(frame(0x81, 2, "hi"), frame(0x88, 2, goodbye(1000, ""))...))
	f.Add(slices.Concat(frame(0x81, 2, "\xff\xff"), frame(0x81, 2, "hi"), frame(0x88, 0, "")))
	f.Add(append(frame(0x81, 70_000, strings.Repeat("x", 70_000)), frame(0x8a, 0, "")...))
	f.Add([]byte{0x83, 0x80, 0, 0, 0, 0, 0x81, 0x00})
	c := door.Defaults()
	c.Listen, c.CloseTimeout = "127.0.0.1:0", door.Duration(time.Second)
	var d *door.Door
	d, err := door.New("fuzz", c, door.Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.Accept(w, r, echo) }))
	require.NoError(f, err)
	addr, err := d.Listen()
	require.NoError(f, err)
	done := make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- d.Serve(ctx) }()
	f.Cleanup(func() {
		cancel()
		<-done
	})
	f.Fuzz(func(t *testing.T, sent []byte) {
		conn, err := net.Dial("tcp", addr.String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		go func() {
			_, _ = io.WriteString(conn, upgrade)
			_, _ = conn.Write(sent)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		r := bufio.NewReader(conn)
		response, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
		for closed := false; ; {
			first, err := r.Peek(1)
			if err != nil {
				var timeout net.Error
				require.False(t, err != io.EOF && errors.As(err, &timeout) && timeout.Timeout(), "the connection stays open")
				return
			}
			require.Contains(t, []byte{0x81, 0x88, 0x8a}, first[0])
			require.False(t, closed && first[0] != 0x8a, "received frame %#x after the close frame", first)
			kind, payload := readFrame(t, r)
			closed = closed || kind == 0x88
			if kind == 0x88 && len(payload) > 0 {
				require.GreaterOrEqual(t, len(payload), 2)
				require.LessOrEqual(t, len(payload), 125)
			}
		}
	})
}
