// Package socket is the WebSocket of a client of waza serve: whole text messages in both
// directions.
package socket

import (
	"context"

	"github.com/coder/websocket"
)

// Conn is a connection. Read and Write can be called concurrently.
type Conn struct {
	ws       *websocket.Conn
	farewell string
}

// New returns the connection of a WebSocket. Messages to it have at most that many bytes, and
// Close gives the server the reason farewell.
func New(ws *websocket.Conn, most int64, farewell string) Conn {
	ws.SetReadLimit(most)
	return Conn{ws, farewell}
}

// Read returns the next message.
func (c Conn) Read(ctx context.Context) ([]byte, error) {
	_, b, err := c.ws.Read(ctx)
	return b, err
}

// Write sends a message.
func (c Conn) Write(ctx context.Context, message []byte) error {
	return c.ws.Write(ctx, websocket.MessageText, message)
}

// Close sends a close frame and closes the connection.
func (c Conn) Close() { _ = c.ws.Close(websocket.StatusGoingAway, c.farewell) }
