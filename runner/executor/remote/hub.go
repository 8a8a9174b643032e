// Package remote is the executor whose agents connect to `waza serve` and do trials
// where they live: in a browser's DevTools, on a phone, on another machine. [New] makes
// the executor's kind. What it needs of the server is the interface [Hub], which the
// server implements for its own process and, over a socket, for all others.
package remote

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Hub gives evaluations to the agents that are connected to a server. It is safe for
// concurrent use.
type Hub interface {
	// Reserve waits until an agent that w fits has room for one more evaluation, and
	// keeps that room. Of those that wait, the one of the highest priority is served
	// first, then the one that asked first. While no server is there it waits for one.
	// The error is the cause of ctx when that ended, or a [*NoToolError].
	Reserve(ctx context.Context, w *Want) (Slot, error)
	Directory
}

// Slot is the room that an agent has for one evaluation. It belongs to one goroutine.
type Slot interface {
	// ClientID says whose room it is.
	ClientID() string
	// Evaluate sends the evaluation to the agent and waits for its answer. It calls
	// status for each update of the agent, one at a time; nil ignores them. When the
	// agent's connection breaks, it waits a while for the agent to come back and sends
	// the evaluation again with the same id.
	//
	// The error is an [*executor.AgainError] when the agent or the server is gone, or when
	// the agent has no such tool or has too much to do: reserve again. It is the cause of
	// ctx when that ended while the agent was connected.
	Evaluate(ctx context.Context, e *Evaluation, status func(Status)) (*Answer, error)
	// Release gives the room back. An agent that still works on an evaluation whose ctx
	// has ended keeps its room occupied until it answers, or a while has passed.
	Release()
}

// Directory lists the agents that a server knows. It is safe for concurrent use.
type Directory interface {
	// Agents lists the agents, by client id. The error is [ErrNoServer] when there is no
	// server.
	Agents(ctx context.Context) ([]*Agent, error)
	// Watch calls changed for each agent now, then for each change, one at a time and in
	// order, until ctx ends, and returns its cause. A watcher that is slow gets the newest
	// state of an agent and misses states between. The error is [ErrNoServer] when there
	// is no server, or it has gone.
	Watch(ctx context.Context, changed func(*Agent)) error
	// Kick closes the connection of an agent, which may connect again.
	Kick(ctx context.Context, clientID, why string) error
}

// Want says which agents may do an evaluation.
type Want struct {
	// ID is the name of the attempt, that of [Evaluation].
	ID string `json:"id"`
	// Tool is what the agent is to use. An agent that lists no tools may have it.
	Tool string `json:"tool"`
	// Tools are further ones that the agent must list.
	Tools []string `json:"tools,omitempty"`
	// Clients are the ids of the agents that may do it; empty means all.
	Clients []string `json:"clients,omitempty"`
	// Priority is high, normal or low; empty means normal.
	Priority string `json:"priority,omitempty"`
}

// Fits reports whether the agent may do the evaluation, whether or not it is free.
func (w *Want) Fits(a *Agent) bool {
	if len(w.Clients) > 0 && !slices.ContainsFunc(w.Clients, a.Is) {
		return false
	}
	for _, tool := range w.Tools {
		if !slices.Contains(a.Tools, tool) {
			return false
		}
	}
	return !slices.Contains(a.Lacks, w.Tool) && (len(a.Tools) == 0 || slices.Contains(a.Tools, w.Tool))
}

// Evaluation is what an agent is asked: the parameters of the method evaluate.
type Evaluation struct {
	// ID names run, task, trial and attempt, see [EvaluationID]. It is the same whenever
	// the evaluation is sent.
	ID   string `json:"evaluationId"`
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
	Tool string `json:"tool"`
	// Input is what the tool gets, any JSON value.
	Input json.RawMessage `json:"input"`
	// Model is what the agent is to use; any JSON value, or empty.
	Model json.RawMessage `json:"model,omitempty"`
	// Timeout is in milliseconds.
	Timeout  int64    `json:"timeout"`
	Metadata Metadata `json:"metadata"`
}

// Metadata is what an agent may like to know of an evaluation.
type Metadata struct {
	Tags []string `json:"tags"`
	// Retries is how often a trial that failed or broke may be tried again.
	Retries  int    `json:"retries"`
	Priority string `json:"priority"`
}

// Status is how far an agent has come with an evaluation.
type Status struct {
	// Status is running, completed or failed.
	Status string `json:"status"`
	// Progress is from 0 to 1; nil when it was not given.
	Progress *float64 `json:"progress,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// Answer is what an agent gave: a result or an error.
type Answer struct {
	ClientID string `json:"clientId"`
	// Result is any JSON value, null included; it is empty when there is an error.
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Fault          `json:"error,omitempty"`
}

// Fault is an error object of JSON-RPC.
type Fault struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// The codes of errors that the protocol gives a meaning of its own.
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
	// Registered agents have yet to say that they are ready.
	Registered = "registered"
	// Ready agents take evaluations.
	Ready = "ready"
	// Paused agents have asked to be left alone for a while.
	Paused = "paused"
	// Gone agents were connected and have evaluations that wait for them.
	Gone = "gone"
)

// Agent is a client of the evaluation protocol. Nobody changes one that was returned.
type Agent struct {
	ClientID       string    `json:"clientId" doc:"UUID of the agent, with :TAB when it is a tab of a browser."`
	State          string    `json:"state" doc:"registered: it has yet to say that it is ready; ready; paused: it has asked to be left alone for a while; gone: evaluations wait for it to come back."`
	Tools          []string  `json:"tools" doc:"Tools that it lists. An agent that lists none may be asked for any."`
	Lacks          []string  `json:"lacks,omitempty" doc:"Tools that it has said not to have; absent when none."`
	MaxConcurrency int       `json:"maxConcurrency" doc:"Most evaluations at once."`
	Running        int       `json:"running" doc:"Evaluations that it has now."`
	Answered       int64     `json:"answered" doc:"Evaluations that it has answered since the server started."`
	Version        string    `json:"version,omitempty" doc:"Its version, as it says; absent when it says none."`
	Address        string    `json:"address,omitempty" doc:"Where it connects from; absent when it is gone."`
	Since          time.Time `json:"since" doc:"When it registered."`
}

// Is reports whether id names the agent: its whole id, or the part before the colon.
func (a *Agent) Is(id string) bool {
	base, _, _ := strings.Cut(a.ClientID, ":")
	return strings.EqualFold(id, a.ClientID) || strings.EqualFold(id, base)
}

// Free is how many more evaluations the agent takes now.
func (a *Agent) Free() int {
	if a.State != Ready {
		return 0
	}
	return max(0, a.MaxConcurrency-a.Running)
}
