// Package browser is the executor whose agents are browser assistants: models that use a browser
// page through an extension connected to `waza serve`. It reaches the server through the
// interface [Hub]. The server implements Hub for its own process, and for all others over a
// socket.
package browser

import (
	"context"
	"strings"
	"time"

	"waza/runner/provider"
	"waza/runner/record"
)

// Hub lets browser assistants carry out commands. It is safe for concurrent use.
type Hub interface {
	// Reserve waits for a free extension that w fits, and reserves it for one trial. If no
	// server is running, it waits for one. The error is the cause of ctx, or explains why there
	// will never be room.
	Reserve(ctx context.Context, w *Want) (Slot, error)
	Directory
}

// Want selects the extensions that can execute a trial.
type Want struct {
	// ID identifies the attempt.
	ID string `json:"id"`
	// Extension is the id of the extension. Empty means any extension that is available for
	// evaluations.
	Extension string `json:"extension,omitempty"`
}

// Fits reports whether the extension can execute the trial, busy or not.
func (w *Want) Fits(e *Extension) bool {
	if w.Extension == "" {
		return e.Evaluation
	}
	return strings.EqualFold(w.Extension, e.ID)
}

// Slot is an extension that is reserved for one trial. It must not be used concurrently.
type Slot interface {
	// ExtensionID returns the id of the extension.
	ExtensionID() string
	// Execute lets an assistant carry out a command. The commands of a slot share a session. It
	// calls step for each step, in order and one at a time; nil ignores steps. The error is an
	// [*executor.RetryError] if the extension or the server is gone, or the cause of ctx if ctx
	// ended. Any other error is a fault of the harness or the provider.
	Execute(ctx context.Context, c *Command, step func(Step)) (*Answer, error)
	// Release gives the extension back and ends the session.
	Release()
}

// Command is a task for an assistant.
type Command struct {
	// ID identifies the attempt and the prompt.
	ID   string `json:"id"`
	Text string `json:"text"`
	// Assistant is the id or name of one of the user's assistants. It is empty if Made defines
	// the assistant.
	Assistant string `json:"assistant,omitempty"`
	Made      *Made  `json:"made,omitempty"`
	// Timeout is in nanoseconds and excludes the time that tools take. 0 means the
	// command_timeout of the server.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxTurns is the maximum number of the model's answers to the command. All answers except
	// the last are tool calls. 0 means 10.
	MaxTurns int `json:"maxTurns,omitempty"`
}

// Made is an assistant that is made for a trial. It is not listed, and ends with the trial.
type Made struct {
	Name         string   `json:"name"`
	Instructions string   `json:"instructions"`
	Capabilities []string `json:"capabilities"`
	// Model is empty for the default model of the server.
	Model string `json:"model,omitempty"`
}

// Step is an event of a command. Exactly one field is set.
type Step struct {
	// Message is a text of the model. The answer is a message, too.
	Message string `json:"message,omitempty"`
	Thought string `json:"thought,omitempty"`
	// Tool is a call that has completed or failed.
	Tool    *record.ToolCall `json:"tool,omitempty"`
	Warning string           `json:"warning,omitempty"`
}

// Answer is the result of a command.
type Answer struct {
	Text string `json:"text"`
	// Model is the model that answered.
	Model string `json:"model,omitempty"`
	// Usage is the cost of the requests to the model.
	Usage    record.Usage    `json:"usage"`
	Cached   provider.Cached `json:"cached,omitzero"`
	Requests int             `json:"requests,omitempty"`
}

// Directory lists the extensions and assistants of a server. It is safe for concurrent use.
type Directory interface {
	// Extensions lists the connected extensions, by id. The error is [executor.ErrNoServer] if no server
	// is running.
	Extensions(ctx context.Context) ([]*Extension, error)
	// Assistants lists the user's assistants, by name. The error is [executor.ErrNoServer] if no server
	// is running.
	Assistants(ctx context.Context) ([]*Assistant, error)
}

// Extension is a connected browser extension. A returned Extension does not change.
type Extension struct {
	ID         string    `json:"id" doc:"Id of the extension: a UUID, or the 32 letters that Chrome assigns."`
	Address    string    `json:"address" doc:"Address from which it connects."`
	Version    string    `json:"version,omitempty" doc:"Protocol version that it reported; absent if none."`
	Evaluation bool      `json:"evaluation,omitempty" doc:"Whether it is available for evaluations."`
	Since      time.Time `json:"since" doc:"When it connected."`
	Trial      string    `json:"trial,omitempty" doc:"Attempt at a trial for which it is reserved; absent if none."`
	Command    string    `json:"command,omitempty" doc:"Text of the running command, shortened; absent if none."`
	Tool       string    `json:"tool,omitempty" doc:"Tool that is running; absent if none."`
	Messages   int64     `json:"messages" doc:"Messages that it has sent."`
}

// Assistant is one of the user's assistants. A returned Assistant does not change.
type Assistant struct {
	ID           string        `json:"id" doc:"UUID of the assistant."`
	Name         string        `json:"name" doc:"Unique name."`
	Status       string        `json:"status" doc:"active or inactive. Commands go to the active one."`
	Model        string        `json:"model,omitempty" doc:"Model of the assistant; absent for the default of the server."`
	Capabilities []string      `json:"capabilities" doc:"Tools that it can use."`
	CreatedAt    time.Time     `json:"createdAt" doc:"When it was created."`
	LastActiveAt *time.Time    `json:"lastActiveAt,omitempty" doc:"When it last carried out a command or was activated; absent if never."`
	Executing    *CommandInfo  `json:"executing,omitempty" doc:"Running command; absent if none."`
	Queued       []CommandInfo `json:"queued,omitempty" doc:"Waiting commands, the next one first; absent if none."`
}

// Is reports whether named is the assistant's id, or its name in any letter case.
func (a *Assistant) Is(named string) bool {
	return strings.EqualFold(named, a.Name) || strings.EqualFold(named, a.ID)
}

// CommandInfo is a command of an assistant.
type CommandInfo struct {
	ID        string    `json:"id" doc:"Id of the command."`
	Text      string    `json:"text" doc:"Text of the command, shortened."`
	Since     time.Time `json:"since" doc:"When it started, or was queued."`
	Extension string    `json:"extension" doc:"Id of the extension that sent it."`
}
