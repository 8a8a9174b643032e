package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
)

const goodToken = "open sesame, please"

func show(id int, token string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"token":%q}}`, id, token)
}

// A batch of guesses was evaluated as a whole, and so were the lines after it.
func TestAttackWrongTokenEndsConnection(t *testing.T) {
	t.Parallel()
	addr := listen(t, newServer(t, rpc.Options{Token: goodToken}))
	var batch []string
	for i := range 98 {
		batch = append(batch, show(i, fmt.Sprint("a wrong guess ", i)))
	}
	batch = append(batch, show(98, goodToken), strings.TrimSpace(ping("99")))
	c := dial(t, addr)
	c.send("[" + strings.Join(batch, ",") + "]\n" + show(100, goodToken) + "\n" + ping("101"))
	got := c.rest()
	require.Len(t, got, 1)
	var replies []message
	require.NoError(t, json.Unmarshal([]byte(got[0]), &replies))
	require.Len(t, replies, 100)
	for _, r := range replies {
		require.NotNil(t, r.Error, string(r.ID))
		require.EqualValues(t, -32006, r.Error.Code)
	}
	authorised(t, addr, goodToken).must("ping", nil, nil)
}

// Silent connections took all slots, and kept out the client that had the token.
func TestAttackSilentConnectionsLockNobodyOut(t *testing.T) {
	t.Parallel()
	addr := listen(t, newServer(t, rpc.Options{Token: goodToken, MaxConnections: 2}))
	type end struct {
		read int64
		err  error
	}
	const silent, kept = 101, 16
	ends := make(chan end, silent)
	for range silent {
		c := dial(t, addr)
		go func() {
			n, err := io.Copy(io.Discard, c.r)
			ends <- end{n, err}
		}()
	}
	for range silent - kept { // later, none of them is the reason that another one is closed
		require.Equal(t, end{}, <-ends, "the oldest silent connections are closed")
	}
	one, two := authorised(t, addr, goodToken), authorised(t, addr, goodToken)
	one.must("ping", nil, nil)
	two.must("ping", nil, nil)
	three := dial(t, addr)
	three.send(show(1, goodToken) + "\n")
	require.EqualValues(t, -32005, three.next().Error.Code)
	require.Empty(t, three.rest())
}

func TestShortTokenIsRefused(t *testing.T) {
	t.Parallel()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	_, err = rpc.New(rpc.Options{Token: "x", Runner: r})
	require.EqualError(t, err, "the token has 1 characters, it must have at least 16")
}
