package client

import "context"

// Conn is what RunOver needs of a connection.
type Conn = conn

// RunOver is Run with connections of the test's own.
func RunOver(ctx context.Context, o Options, dial func(ctx context.Context, url string) (Conn, error)) error {
	return run(ctx, o, dial)
}

// MaxRemembered is how many answers are kept.
const MaxRemembered = maxRemembered
