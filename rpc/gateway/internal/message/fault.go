package message

import (
	"time"

	"waza/eval/text"
)

// Fault is an error that a door reports to a client. The codes, and their type, are those of the
// door's protocol.
type Fault[Code int | string] struct {
	Code    Code
	Message string
	// Data are additional fields of the error; nil means none.
	Data map[string]any
	// RetryAfter is the time until the request may succeed; 0 means unknown.
	RetryAfter time.Duration
	// ID identifies the client's message, as the protocol writes ids; empty means unknown.
	ID string
}

func (f *Fault[Code]) Error() string { return f.Message }

// Of returns the fault as the answer to the message with an id.
func (f *Fault[Code]) Of(id string) *Fault[Code] {
	of := *f
	of.ID = id
	return &of
}

// Clip shortens a text of a client for an answer or a log.
func Clip(s string) string { return text.Clip(s, 200) }
