package extension

import (
	"context"

	"waza/rpc/client/internal/socket"
)

// Conn is a connection of a test.
type Conn = socket.Conn

// RunOver is like Run, but uses the test's connections.
func RunOver(ctx context.Context, o Options, dial func(ctx context.Context, url string) (Conn, error)) error {
	return run(ctx, o, dial)
}

// MaxResult exports maxResult.
const MaxResult = maxResult
