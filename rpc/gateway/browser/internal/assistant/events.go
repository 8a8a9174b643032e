package assistant

import (
	"encoding/json"
	"time"

	"waza/rpc/gateway/store"
	"waza/runner/executor/browser"
)

// Client is a connection of an extension. Its methods do not block, and do not call methods of
// [Assistants]. Any goroutine can call them.
type Client interface {
	// ExtensionID returns the id that all connections of an extension share; empty when it is
	// unknown.
	ExtensionID() string
	// Evaluation reports whether the extension is available to evaluations.
	Evaluation() bool
	// NewID returns an id for an [Execution] that is sent to the client.
	NewID() string
	// Describe returns the client for lists of extensions, without its work.
	Describe() *browser.Extension
	// Happened sends the message for an event.
	Happened(e any)
}

// The statuses of commands.
const (
	Queued    = "queued"
	Executing = "executing"
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
	TimedOut  = "timeout"
)

// The events for clients. The events of a command are in order.
type (
	// StatusChanged reports the status of a command.
	StatusChanged struct {
		CommandID, SessionID, AssistantID string
		Status                            string
		Message                           string
		Result                            string // answer of a completed command, or of one that failed because of a tool
		Error                             string // error of a command that failed or timed out
	}
	// QueueChanged reports the commands of an assistant.
	QueueChanged struct{ Queue *Queue }
	// Execution requests the execution of a tool.
	Execution struct {
		ID, CommandID, SessionID string
		Tool                     string
		Params                   json.RawMessage
		Timeout                  time.Duration
	}
	// Chunk is a part of an answer or, when Done, the whole answer.
	Chunk struct {
		CommandID, SessionID string
		Text                 string
		Done                 bool
	}
	// Answered is the answer to a command without streaming.
	Answered struct {
		CommandID, SessionID string
		Text                 string
	}
	// Failure is an error of a command.
	Failure struct {
		CommandID string
		Fault     *Fault
	}
	// AssistantChanged reports that another client has changed an assistant.
	AssistantChanged struct{ Assistant *Assistant }
)

// Queue lists the active and waiting commands of an assistant.
type Queue struct {
	AssistantID string
	Waiting     []Waiting
	Executing   *Running // nil when no command is active
}

// Waiting is a command that waits.
type Waiting struct {
	CommandID, Text     string
	QueuedAt, TimeoutAt time.Time // latest time of its timeout if no tools run
}

// Running is an active command.
type Running struct {
	CommandID, Text string
	StartedAt       time.Time
}

// Assistant is an assistant of the user. Returned values must not be changed.
type Assistant struct {
	store.Assistant
	Status string // active, inactive or deleted
}

// The statuses of assistants.
const (
	Active   = "active"
	Inactive = "inactive"
	Deleted  = "deleted"
)
