package jobs

import (
	"context"
	"sync"
	"time"

	"waza/rpc/gateway/door"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
	"waza/runner/pause"
)

// revokedPause is the pause between two checks for revoked tokens. Other processes record
// revocations only in the store.
const revokedPause = 500 * time.Millisecond

// guard closes connections with an expired or revoked token. While connections exist, its
// goroutine checks for revoked tokens; the last connection ends it and waits for it. The zero
// value has no connections.
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

// watchTokens closes connections with revoked tokens until ctx ends.
func (s *Server) watchTokens(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for failed := false; pause.For(ctx, revokedPause) == nil; {
		revoked, err := s.options.Tokens.Revoked(ctx)
		if err != nil {
			if !failed && ctx.Err() == nil {
				s.log.Error("lookup of revoked tokens failed", board.EventKey, "store_failed", "error", err)
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
