// Package remote is the executor whose agents connect to `waza serve` and execute trials where
// they are: in a browser's DevTools, on a phone, on a different machine. [New] returns the
// executor's kind. It reaches the server through the interface [Hub]. The server implements Hub
// for its own process, and for all others over a socket.
package remote

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Hub sends evaluations to the agents that are connected to a server. It is safe for concurrent
// use.
type Hub interface {
	// Reserve waits until an agent that w fits has room for another evaluation, and reserves
	// that room. The highest priority is served first, and then the earliest call. If no server
	// is running, it waits for one. The error is the cause of ctx if that ended, or a
	// [*NoToolError].
	Reserve(ctx context.Context, w *Want) (Slot, error)
	Directory
}

// Slot is the room that an agent has for one evaluation. It must not be used concurrently.
type Slot interface {
	// ClientID returns the client id of the agent.
	ClientID() string
	// Evaluate sends the evaluation to the agent and waits for its answer. It calls status for
	// each update of the agent, one at a time; nil ignores them. If the agent's connection
	// breaks, it waits for a while. When the agent connects again, it sends the evaluation again
	// with the same id.
	//
	// The error is an [*executor.RetryError] if the agent or the server is gone, or the agent
	// lacks the tool or is overloaded: the caller can reserve again. It is the cause of ctx if
	// ctx ended while the agent was connected.
	Evaluate(ctx context.Context, e *Evaluation, status func(Status)) (*Answer, error)
	// Release gives the room back. If ctx ended while the agent worked on the evaluation, the
	// room stays occupied until the agent answers, or for a while.
	Release()
}

// Directory lists the agents of a server. It is safe for concurrent use.
type Directory interface {
	// Agents lists the agents, by client id. The error is [executor.ErrNoServer] if no server is running.
	Agents(ctx context.Context) ([]*Agent, error)
	// Watch calls changed for each agent, and then for each change, one at a time and in order.
	// It returns the cause of ctx when ctx ends. A slow caller gets the newest state of an agent
	// and misses intermediate ones. The error is [executor.ErrNoServer] if no server is running, or it
	// has stopped.
	Watch(ctx context.Context, changed func(*Agent)) error
	// Kick closes the connection of an agent. The agent can connect again.
	Kick(ctx context.Context, clientID, why string) error
}

// Want selects the agents that can do an evaluation.
type Want struct {
	// ID identifies the attempt, like the ID of [Evaluation].
	ID string `json:"id"`
	// Tool is the tool that the agent must have. An agent that lists no tools might have it.
	Tool string `json:"tool"`
	// Tools are further tools that the agent must list.
	Tools []string `json:"tools,omitempty"`
	// Clients are the ids of the allowed agents; empty means all.
	Clients []string `json:"clients,omitempty"`
	// Priority is high, normal or low; empty means normal.
	Priority string `json:"priority,omitempty"`
}

// Fits reports whether the agent can do the evaluation, busy or not. An agent that reported to
// lack the tool fits, too, because it may have refused only one evaluation.
func (w *Want) Fits(a *Agent) bool {
	if len(w.Clients) > 0 && !slices.ContainsFunc(w.Clients, a.Is) {
		return false
	}
	for _, tool := range w.Tools {
		if !slices.Contains(a.Tools, tool) {
			return false
		}
	}
	return len(a.Tools) == 0 || slices.Contains(a.Tools, w.Tool)
}

// Evaluation is a request to an agent: the parameters of the method evaluate.
type Evaluation struct {
	// ID identifies run, task, trial and attempt, see [executor.AttemptID]. It is the same each
	// time the evaluation is sent.
	ID   string `json:"evaluationId"`
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
	Tool string `json:"tool"`
	// Input is the input of the tool, any JSON value.
	Input json.RawMessage `json:"input"`
	// Model is the model that the agent should use; any JSON value, or empty.
	Model json.RawMessage `json:"model,omitempty"`
	// Timeout is in milliseconds.
	Timeout  int64    `json:"timeout"`
	Metadata Metadata `json:"metadata"`
}

// Metadata describes an evaluation for the agent.
type Metadata struct {
	Tags []string `json:"tags"`
	// Retries is how often a trial that failed or broke can be retried.
	Retries  int    `json:"retries"`
	Priority string `json:"priority"`
}

// Status is the progress of an agent with an evaluation.
type Status struct {
	// Status is running, completed or failed.
	Status string `json:"status"`
	// Progress is from 0 to 1, or nil if the agent did not report it.
	Progress *float64 `json:"progress,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Answer is the answer of an agent: a result or an error.
type Answer struct {
	ClientID string `json:"clientId"`
	// Result is any JSON value, including null; it is empty if there is an error.
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Fault          `json:"error,omitempty"`
}

// Fault is an error object of JSON-RPC.
type Fault struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// The error codes to which the protocol gives a meaning.
const (
	CodeToolFailed  = -32000
	CodeTimeout     = -32001
	CodeAuth        = -32002
	CodeRateLimited = -32003
	CodeInvalidTool = -32004
	CodeResource    = -32005
)

// The states of an agent.
const (
	// Registered agents have not reported yet that they are ready.
	Registered = "registered"
	// Ready agents accept evaluations.
	Ready = "ready"
	// Paused agents asked for no evaluations for a while.
	Paused = "paused"
	// Gone agents are disconnected, and evaluations wait for their return.
	Gone = "gone"
)

// Agent is a client of the evaluation protocol. A returned Agent does not change.
type Agent struct {
	ClientID       string    `json:"clientId" doc:"UUID of the agent, with :TAB for a tab of a browser."`
	State          string    `json:"state" doc:"registered: it has not reported yet that it is ready; ready; paused: it asked for no evaluations for a while; gone: it is disconnected and evaluations wait for its return."`
	Tools          []string  `json:"tools" doc:"Tools that it lists. An agent that lists none can get evaluations for any tool."`
	Lacks          []string  `json:"lacks,omitempty" doc:"Tools that it reported not to have; absent if none."`
	MaxConcurrency int       `json:"maxConcurrency" doc:"Maximum number of concurrent evaluations."`
	Running        int       `json:"running" doc:"Evaluations that it is working on."`
	Answered       int64     `json:"answered" doc:"Evaluations that it has answered since the server started."`
	Version        string    `json:"version,omitempty" doc:"Version that it reported; absent if none."`
	Address        string    `json:"address,omitempty" doc:"Address from which it connects; absent if it is gone."`
	Since          time.Time `json:"since" doc:"When it registered."`
}

// Is reports whether id identifies the agent: its whole id, or the part before the colon.
func (a *Agent) Is(id string) bool {
	base, _, _ := strings.Cut(a.ClientID, ":")
	return strings.EqualFold(id, a.ClientID) || strings.EqualFold(id, base)
}

// Free returns how many more evaluations the agent accepts now.
func (a *Agent) Free() int {
	if a.State != Ready {
		return 0
	}
	return max(0, a.MaxConcurrency-a.Running)
}
