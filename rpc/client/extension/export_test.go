package extension

import "context"

// Conn exports conn.
type Conn = conn

// RunOver is like Run, but uses the test's connections.
func RunOver(ctx context.Context, o Options, dial func(ctx context.Context, url string) (Conn, error)) error {
	return run(ctx, o, dial)
}

// MaxResult exports maxResult.
const MaxResult = maxResult
