package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/rpc/client/internal/socket"
)

const (
	// maxMessage is the maximum size of a message from the server, in bytes.
	maxMessage = 10 << 20
	// maxResult is the maximum size of a tool's result, in bytes. Servers accept messages of 10
	// MB.
	maxResult = 8 << 20
	// maxError is the maximum length of an error, in characters.
	maxError = 4000
)

// message is a message from the server.
type message struct {
	Type          string `json:"type"`
	ID            string `json:"id"`
	CorrelationID string `json:"correlation_id"`
	Payload       struct {
		// field of connected
		Version  string `json:"version"`
		Timeouts struct {
			Heartbeat float64 `json:"heartbeat_interval_seconds"`
		} `json:"timeouts"`
		// fields of tool_execution
		Tool      string          `json:"tool"`
		Params    json.RawMessage `json:"params"`
		TimeoutMS int64           `json:"timeout_ms"`
		// fields of status_update
		Status    string `json:"status"`
		SessionID string `json:"session_id"`
		// fields of error
		Code         string `json:"code"`
		Message      string `json:"message"`
		RetryAfterMS int64  `json:"retry_after_ms"`
	} `json:"payload"`
}

// result is the payload of tool_result.
type result struct {
	Status          string          `json:"status"`
	Result          json.RawMessage `json:"result,omitempty"`
	Error           string          `json:"error,omitempty"`
	ExecutionTimeMS int64           `json:"execution_time_ms"`
}

// encode encodes a message of the extension.
func encode(kind, id, correlation string, payload any) []byte {
	b, err := jsonwalk.Encode(struct {
		Type          string `json:"type"`
		ID            string `json:"id"`
		Timestamp     int64  `json:"timestamp"`
		CorrelationID string `json:"correlation_id,omitempty"`
		Payload       any    `json:"payload"`
	}{kind, id, time.Now().UnixMilli(), correlation, payload})
	if err != nil {
		panic(fmt.Sprintf("message %s: %v", kind, err)) // cannot happen: all parts can be encoded
	}
	return b
}

// IsID reports whether s has the form of an extension's id: a UUID.
func IsID(s string) bool { return idForm().MatchString(s) }

var idForm = text.Pattern(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// dial connects to a WebSocket. The error is a [*RejectedError] when the server answers but
// rejects the extension.
func dial(ctx context.Context, url string) (socket.Conn, error) {
	c, res, err := websocket.Dial(ctx, url, nil)
	if res != nil && res.Body != nil {
		defer res.Body.Close()
	}
	if err != nil {
		if res != nil && res.StatusCode/100 == 4 && res.StatusCode != http.StatusTooManyRequests {
			return nil, &RejectedError{Reason: "HTTP status " + res.Status}
		}
		return nil, err
	}
	return socket.New(c, maxMessage, "the extension ends"), nil
}
