// Package provider asks models through the API of their provider. It alone handles keys, prices,
// budgets, rate limits and retries, for executors and judges alike.
//
// Make a [Pool] per run with [NewPool], get a [Client] for an [Endpoint] and a model with
// [Pool.Client], and call [Client.Complete]:
//
//	Complete ─► budget ─► limiter (per provider and model) ─► HTTP ─► streamed Reply
//	               ▲            ▲ slower on 429 and overload     │
//	               └────────────┴── retries: transport faults ◄──┘
//
// Every error of Complete is an [*Error], whose Kind classifies the failure, or the cause of the
// caller's context.
package provider

import (
	"context"
	"encoding/json"
	"time"

	"waza/runner/record"
)

// Client asks one model. It is safe for concurrent use.
type Client interface {
	// Complete sends a conversation and returns the model's answer. It blocks until the answer
	// is complete, and returns promptly when ctx ends. With an error, the reply contains what
	// arrived before the error. The reply is never nil.
	Complete(ctx context.Context, r *Request) (*Reply, error)
}

// Request is a request to a model: the conversation until now.
type Request struct {
	// System is the system prompt; empty means none.
	System string
	// Messages are the conversation, oldest first. The last message is from the user or contains
	// tool results.
	Messages []Message
	// Tools are the tools that the model can call.
	Tools []Tool
	// Answer, if not nil, requires the model to answer with JSON of a schema, which is returned
	// in Reply.Answer.
	Answer *Answer
	// Params are further parameters of the API under their API names (temperature, max_tokens,
	// …).
	Params map[string]any
	// Effort is the reasoning effort under its API name: low, medium, high, xhigh, max. It sets
	// reasoning_effort of OpenAI's API, or effort of Anthropic's output_config, unless Params
	// contain these. Empty means the default of the API.
	Effort string
	// FirstEvent is the maximum time from sending the request to the first part of the answer; 0
	// means no limit.
	FirstEvent time.Duration
	// RetryWithin limits how long after its start a call waits for its turn, or tries again after
	// a fault; 0 means no limit. A try that has started can take longer.
	RetryWithin time.Duration
	// Text, if not nil, is called with the parts of the answer's text as they arrive. The calls
	// are in order, from the goroutine that called Complete, and never after Complete has
	// returned. The parts add up to the text of the reply, even if Complete returns an error.
	// Therefore a call that fails after the first part is not retried. While Text blocks, no
	// data is read. Keys are not removed from the parts, and parts can end within words or
	// lines.
	Text func(part string)
}

// Role identifies the author of a message.
type Role string

// The roles of messages. Tool results are a message of their own.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one turn of a conversation.
type Message struct {
	Role Role
	Text string
	// Calls are the tool calls of an assistant.
	Calls []Call
	// Results answer the calls of the preceding assistant message.
	Results []Result

	// native is the turn in the form of the API, including data without a field above, such as
	// signed thoughts. Only the client that made it reads it.
	native any
}

// Tool is a tool that the model can call.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of an object; nil means no parameters.
	Parameters map[string]any
}

// Call is a tool call by the model.
type Call struct {
	ID   string
	Name string
	// Arguments is always valid JSON. If the model wrote invalid JSON, it is a string with the
	// model's text, and Malformed is set.
	Arguments json.RawMessage
	Malformed bool

	raw string // the model's text
}

// Result answers a call.
type Result struct {
	ID      string // of the call
	Text    string
	IsError bool
}

// Answer defines how a model has to answer.
type Answer struct {
	// Name of the answer: letters, digits and underscores.
	Name        string
	Description string
	// Schema is a JSON Schema of an object.
	Schema map[string]any
	// AsSchema requests the answer as structured output instead of a tool call, for servers that
	// cannot force a tool call.
	AsSchema bool
}

// Has reports whether the answer has a member of that name.
func (a *Answer) Has(name string) bool {
	properties, _ := a.Schema["properties"].(map[string]any)
	_, ok := properties[name]
	return ok
}

// StopReason is the reason why the model stopped.
type StopReason string

// The reasons why models stop. Other reasons have the name of the API.
const (
	StopEnd     StopReason = "end"
	StopCalls   StopReason = "tool_calls"
	StopLength  StopReason = "length"
	StopRefusal StopReason = "refusal"
)

// Reply is the answer of a model.
type Reply struct {
	// Message is the turn to append to the conversation.
	Message Message
	// Thought contains the thoughts of the model, if the API reports them.
	Thought string
	// Answer is the JSON object requested by Request.Answer, or nil if the model did not send a
	// valid one. It is not validated against the schema.
	Answer json.RawMessage
	Stop   StopReason
	// Model is the model that answered, under its API name.
	Model string
	// Usage is the usage of all tries. Its cost is 0 if the price is unknown.
	Usage  record.Usage
	Cached Cached
	// Estimated means that the provider counted nothing, so that Usage is an estimate.
	Estimated bool
	// FirstToken is the time from sending the request to the first part of the answer, and
	// Duration the time to its end. Both are those of the last try.
	FirstToken, Duration time.Duration
	// Tries is the number of requests sent, including retries.
	Tries int
}

// Cached counts the input tokens that a provider's cache was involved in, because they have
// prices of their own. They are part of record.Usage.InputTokens.
type Cached struct {
	Read    int64 `json:"read,omitempty"`
	Written int64 `json:"written,omitempty"`
}

// Plus returns the sum of both.
func (c Cached) Plus(o Cached) Cached {
	return Cached{Read: c.Read + o.Read, Written: c.Written + o.Written}
}

// maxAnswerBytes is the maximum size of one answer: its text, its thoughts and the arguments of
// its calls.
const maxAnswerBytes = 4 << 20

// bytesPerToken is a cautious estimate for texts in any language.
const bytesPerToken = 3

// estimate returns the estimated number of input tokens of the request.
func (r *Request) estimate() int64 {
	n := len(r.System) + 16
	for i := range r.Messages {
		m := &r.Messages[i]
		n += len(m.Text) + 16
		for j := range m.Calls {
			n += len(m.Calls[j].Arguments) + len(m.Calls[j].Name) + 16
		}
		for j := range m.Results {
			n += len(m.Results[j].Text) + 16
		}
	}
	for _, t := range r.Tools {
		n += t.size()
	}
	if a := r.Answer; a != nil {
		n += Tool{a.Name, a.Description, a.Schema}.size()
	}
	return int64(n/bytesPerToken) + 1
}

func (t Tool) size() int {
	schema, err := json.Marshal(t.Parameters)
	if err != nil {
		return 1 << 10
	}
	return len(t.Name) + len(t.Description) + len(schema) + 32
}

// written returns the number of bytes written by the model until now.
func (r *Reply) written() int {
	n := len(r.Message.Text) + len(r.Thought) + len(r.Answer)
	for i := range r.Message.Calls {
		n += len(r.Message.Calls[i].Arguments) + len(r.Message.Calls[i].Name)
	}
	return n
}

// charge adds the usage of the tries before this one.
func (r *Reply) charge(earlier *Reply) {
	r.Usage, r.Cached = r.Usage.Add(earlier.Usage), r.Cached.Plus(earlier.Cached)
	r.Estimated = r.Estimated || earlier.Estimated
}

// newCall returns a call with the arguments that the model wrote.
func newCall(id, name, raw string) Call {
	c := Call{ID: id, Name: name, raw: raw}
	switch {
	case raw == "":
		c.Arguments = json.RawMessage("{}")
	case json.Valid([]byte(raw)):
		c.Arguments = json.RawMessage(raw)
	default:
		c.Malformed = true
		text, err := json.Marshal(raw)
		if err != nil {
			text = []byte(`""`)
		}
		c.Arguments = text
	}
	return c
}

// sendable returns the arguments in the form that APIs accept: an object.
func (c *Call) sendable() json.RawMessage {
	if c.Malformed || len(c.Arguments) == 0 || c.Arguments[0] != '{' {
		return json.RawMessage("{}")
	}
	return c.Arguments
}
