// Package provider asks models, through the API of their provider. It is the one
// place that knows about keys, prices, budgets, rate limits and retries,
// for executors and judges alike.
//
// Make a [Pool] per run with [NewPool], get a [Client] for an [Endpoint] and a
// model with [Pool.Client], and call [Client.Complete]:
//
//	Complete ─► budget ─► limiter (per provider and model) ─► HTTP ─► streamed Reply
//	               ▲            ▲ slower on 429 and overload     │
//	               └────────────┴── retries: transport faults ◄──┘
//
// Every error of Complete is an [*Error], whose Kind says what became of the
// call, or the cause of the caller's context.
package provider

import (
	"context"
	"encoding/json"
	"time"
)

// Client asks one model. It is safe for concurrent use.
type Client interface {
	// Complete sends a conversation and returns what the model answers. It
	// blocks until the answer has come whole, and returns promptly when ctx
	// ends. With an error, the reply holds what had come until then; it is
	// never nil.
	Complete(ctx context.Context, r *Request) (*Reply, error)
}

// Request is one question to a model: a conversation so far.
type Request struct {
	// System is the system prompt; empty means none.
	System string
	// Messages are the conversation, oldest first. The last is from the user
	// or holds tool results.
	Messages []Message
	// Tools are what the model may call.
	Tools []Tool
	// Answer, if not nil, is how the model has to answer: as JSON of that
	// schema, which comes back in Reply.Answer.
	Answer *Answer
	// Params are further parameters of the API, as it names them
	// (temperature, max_tokens, …).
	Params map[string]any
	// FirstEvent is how long the model may take until something of its answer
	// comes, counted from when the request is sent; 0 means no limit.
	FirstEvent time.Duration
	// Text, if not nil, is called with the parts of the answer's text as they
	// arrive: in order, by the goroutine that called Complete, never after
	// Complete has returned. Together the parts are the text of the reply, also
	// when Complete returns an error. Therefore a call that fails after the
	// first part is not retried. While Text blocks, nothing more is read. No
	// key is taken out of the parts, nor are they whole words or lines.
	Text func(part string)
}

// Role says who speaks.
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
	// Results answer the calls of the assistant before.
	Results []Result

	// native is the turn as the API gave it, with what the fields above do not
	// hold, such as signed thoughts. Only the client that made it reads it.
	native any
}

// Tool is something the model may call.
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
	// Arguments is always valid JSON: a string with what the model wrote when
	// that was none; Malformed says so.
	Arguments json.RawMessage
	Malformed bool

	raw string // what the model wrote
}

// Result answers a call.
type Result struct {
	ID      string // of the call
	Text    string
	IsError bool
}

// Answer is how a model has to answer.
type Answer struct {
	// Name of the answer: letters, digits and underscores.
	Name        string
	Description string
	// Schema is a JSON Schema of an object.
	Schema map[string]any
	// AsSchema asks for the answer as structured output rather than as a tool
	// call, for servers that cannot be made to call a tool.
	AsSchema bool
}

// StopReason says why the model stopped.
type StopReason string

// The reasons why models stop. Others are passed on as the API names them.
const (
	StopEnd     StopReason = "end"
	StopCalls   StopReason = "tool_calls"
	StopLength  StopReason = "length"
	StopRefusal StopReason = "refusal"
)

// Reply is what a model answered.
type Reply struct {
	// Message is the turn to put at the end of the conversation.
	Message Message
	// Thought is what the model thought, where the API reports it.
	Thought string
	// Answer is the JSON that Request.Answer asked for, a valid JSON object;
	// nil when the model gave none. It is not checked against the schema.
	Answer json.RawMessage
	Stop   StopReason
	// Model is the model that answered, as the API names it.
	Model string
	Usage Usage
	// FirstToken is the time from sending the request until something of the
	// answer came; Duration until its end. Both are those of the last try.
	FirstToken, Duration time.Duration
	// Tries counts the requests that were sent, retries included.
	Tries int
}

// Usage counts what calls cost.
type Usage struct {
	// InputTokens are all tokens read, CachedTokens those of them that came
	// from the provider's cache, and CacheWriteTokens those put there.
	InputTokens, CachedTokens, CacheWriteTokens int64
	OutputTokens                                int64
	// CostUSD is 0 when no price is known.
	CostUSD float64
	// Estimated: the provider counted nothing, so the counts are guesses.
	Estimated bool
}

// Tokens is the number of tokens in all.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Add sums two usages.
func (u Usage) Add(o Usage) Usage {
	u.InputTokens += o.InputTokens
	u.CachedTokens += o.CachedTokens
	u.CacheWriteTokens += o.CacheWriteTokens
	u.OutputTokens += o.OutputTokens
	u.CostUSD += o.CostUSD
	u.Estimated = u.Estimated || o.Estimated
	return u
}

// maxAnswerBytes bounds what is kept of one answer: its text, its thoughts and
// the arguments of its calls.
const maxAnswerBytes = 4 << 20

// bytesPerToken is a cautious guess for texts of any language.
const bytesPerToken = 3

// estimate guesses the tokens that the request is read as.
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

// written is how much the model has written so far, in bytes.
func (r *Reply) written() int {
	n := len(r.Message.Text) + len(r.Thought) + len(r.Answer)
	for i := range r.Message.Calls {
		n += len(r.Message.Calls[i].Arguments) + len(r.Message.Calls[i].Name)
	}
	return n
}

// newCall makes a call of what the model wrote as arguments.
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

// sendable are the arguments in a form that APIs take back: an object.
func (c *Call) sendable() json.RawMessage {
	if c.Malformed || len(c.Arguments) == 0 || c.Arguments[0] != '{' {
		return json.RawMessage("{}")
	}
	return c.Arguments
}
