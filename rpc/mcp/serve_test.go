package mcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
)

// Main ends with its input and with its context; TestMain checks that no goroutine remains.
func TestMainEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(in *os.File, cancel func())
		code int
	}{
		"input":   {func(in *os.File, _ func()) { in.Close() }, 0},
		"context": {func(_ *os.File, cancel func()) { cancel() }, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, toServer, err := os.Pipe()
			require.NoError(t, err)
			fromServer, out, err := os.Pipe()
			require.NoError(t, err)
			r, err := runner.New(runner.Options{StateDir: t.TempDir()})
			require.NoError(t, err)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			code := make(chan int)
			o := Options{Dir: t.TempDir(), Daemon: newDaemon(t, r), Runner: r}
			go func() { code <- Main(ctx, in, out, io.Discard, o) }()
			_, err = toServer.WriteString(`{"jsonrpc":"2.0","id":1,"method":"initialize",` +
				`"params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n")
			require.NoError(t, err)
			line, err := bufio.NewReader(fromServer).ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, `"name":"waza"`)
			c.end(toServer, func() { cancel(errors.New("ended")) })
			require.Equal(t, c.code, <-code)
			_ = toServer.Close()
			_ = fromServer.Close()
		})
	}
}

// A directory that does not exist is an error before anything is served.
func TestMainWithoutDirectory(t *testing.T) {
	t.Parallel()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, exitUsage, Main(t.Context(), nil, nil, io.Discard, Options{Dir: "/does/not/exist", Runner: r}))
	require.NoError(t, r.Close(t.Context()))
}
