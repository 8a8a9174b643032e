// Package socket is the connection of a client of waza serve: whole text messages in both
// directions. [Reconnect] keeps a client connected.
package socket

import (
	"context"
	"log/slog"
	"time"

	"github.com/coder/websocket"

	"waza/runner/pause"
)

const (
	// writeTimeout is how long a server can take to accept a message.
	writeTimeout = 30 * time.Second
	// The pauses between connections grow up to longestPause. After a connection that lasted
	// steady, they start again with the shortest.
	longestPause = 30 * time.Second
	steady       = 10 * time.Second
)

// Conn is a connection. Read and Write can be called concurrently.
type Conn interface {
	// Read returns the next message.
	Read(ctx context.Context) ([]byte, error)
	// Write sends a message.
	Write(ctx context.Context, message []byte) error
	// Close ends the connection.
	Close()
}

// Dialer connects to the server at a URL.
type Dialer func(ctx context.Context, url string) (Conn, error)

type conn struct {
	ws       *websocket.Conn
	farewell string
}

// New returns the connection of a WebSocket. Messages to it have at most that many bytes, and
// Close gives the server the reason farewell.
func New(ws *websocket.Conn, most int64, farewell string) Conn {
	ws.SetReadLimit(most)
	return conn{ws, farewell}
}

func (c conn) Read(ctx context.Context) ([]byte, error) {
	_, b, err := c.ws.Read(ctx)
	return b, err
}

func (c conn) Write(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, message)
}

func (c conn) Close() { _ = c.ws.Close(websocket.StatusGoingAway, c.farewell) }

// Reconnect calls serve for one connection after the other, with pauses that start with shortest,
// until ctx ends, and then returns the cause of ctx. It returns the error of serve if serve returns
// false: then no other connection can succeed.
func Reconnect(ctx context.Context, log *slog.Logger, shortest time.Duration, serve func() (again bool, err error)) error {
	for failures := 0; ; failures++ {
		start := time.Now()
		again, err := serve()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !again:
			return err
		case time.Since(start) >= steady:
			failures = 0
		}
		wait := min(longestPause, shortest<<min(failures, 10))
		log.Warn("connection failed; retrying", "error", err, "pause", wait.String())
		if err := pause.About(ctx, wait); err != nil {
			return err
		}
	}
}

// OrCause returns the cause of ctx if ctx has ended, and err otherwise.
func OrCause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}
