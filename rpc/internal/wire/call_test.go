package wire

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/require"
)

// asking returns a peer whose handler sends a request back: its reply to each request is the
// outcome of a Call.
func asking(t *testing.T) *peer {
	var p *peer
	p = newPeer(t, Options{}, func(ctx context.Context, s *Stream, req *jsonrpc2.Request) bool {
		if req.Method != "ask" {
			return false
		}
		go func() {
			result, err := p.s.Call(context.Background(), "client/method", map[string]int{"a": 1})
			var fault *Error
			switch {
			case errors.As(err, &fault):
				_ = answer(s, req.ID, map[string]any{"code": fault.Code, "message": fault.Message})
			case err != nil:
				_ = answer(s, req.ID, err.Error())
			default:
				_ = answer(s, req.ID, map[string]json.RawMessage{"result": result})
			}
		}()
		return true
	})
	return p
}

func TestCall(t *testing.T) {
	t.Parallel()
	p := asking(t)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)
	require.Equal(t, `{"jsonrpc":"2.0","method":"client/method","params":{"a":1},"id":"waza-1"}`, p.line())
	p.send(
		`{"jsonrpc":"2.0","id":"other","result":1}`,
		`{"jsonrpc":"2.0","id":1,"result":1}`,
		`{"jsonrpc":"2.0","id":"waza-1","result":{"b":[2]}}`,
		`{"jsonrpc":"2.0","id":"waza-1","result":"again"}`,
	)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"result":{"b":[2]}}}`, p.line())

	p.send(`{"jsonrpc":"2.0","id":2,"method":"ask"}`)
	require.True(t, strings.HasSuffix(p.line(), `"id":"waza-2"}`))
	p.send(`{"jsonrpc":"2.0","id":"waza-2","error":{"code":-32601,"message":"no","data":["x"]}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"code":-32601,"message":"no"}}`, p.line())
}

// Call does not wait for the answer of a client whose input has ended.
func TestCallAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := asking(t)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)
	require.Contains(t, p.line(), "waza-1")
	require.NoError(t, p.out.Close())
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"client does not answer"}`, p.line())
}

// The number of unanswered requests to a client is limited.
func TestCallsUnanswered(t *testing.T) {
	t.Parallel()
	p := asking(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.s.Call(ctx, "client/method", nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, p.line(), "waza-1")
	for range maxAsked {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)
		require.Contains(t, p.line(), "client/method")
	}
	_, err = p.s.Call(context.Background(), "client/method", nil)
	require.ErrorIs(t, err, ErrUnanswered)
	require.NoError(t, p.out.Close())
	for range maxAsked {
		require.Contains(t, p.line(), "does not answer")
	}
}
