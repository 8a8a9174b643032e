package jobs

import (
	"context"
	"sync"
	"time"

	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
)

// revokedPause is the pause between two looks at which tokens are revoked: by other
// processes, which say so in the store only.
const revokedPause = 500 * time.Millisecond

// guard closes connections whose token has expired or was revoked. Its goroutine looks for
// revoked tokens while there are connections; the last of them ends it and waits for it. The
// zero value has none.
type guard struct {
	mu    sync.Mutex // guards the fields below
	conns map[*door.Conn]*token.Claims
	stop  context.CancelFunc
	done  chan struct{}
}

// enter guards a connection until leave is called.
func (s *Server) enter(c *door.Conn, who *token.Claims) (leave func()) {
	expired := time.AfterFunc(time.Until(who.ExpiresAt.Time), func() { c.Close(CodeUnauthenticated, token.ErrExpired.Error()) })
	g := &s.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.conns) == 0 {
		ctx, stop := context.WithCancel(context.Background())
		g.conns, g.stop, g.done = map[*door.Conn]*token.Claims{}, stop, make(chan struct{})
		go s.watchTokens(ctx, g.done)
	}
	g.conns[c] = who
	return func() {
		expired.Stop()
		g.mu.Lock()
		delete(g.conns, c)
		if len(g.conns) > 0 {
			g.mu.Unlock()
			return
		}
		stop, done := g.stop, g.done
		g.mu.Unlock()
		stop()
		<-done
	}
}

// watchTokens closes connections whose tokens are revoked until ctx ends.
func (s *Server) watchTokens(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(revokedPause)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		revoked, err := s.options.Tokens.Revoked(ctx)
		if err != nil {
			if !failed && ctx.Err() == nil {
				s.log.Error("revoked tokens cannot be looked up", board.EventKey, "store_failed", "error", err)
			}
			failed = true
			continue
		}
		failed = false
		s.guard.mu.Lock()
		for c, who := range s.guard.conns {
			if revoked(who) {
				c.Close(CodeUnauthenticated, token.ErrRevoked.Error())
			}
		}
		s.guard.mu.Unlock()
	}
}
