package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waza/runner/provider"
)

// Conversation lets a model answer prompts with the help of tools. It does
// not matter where these run: the executors of this package answer calls as the
// suite says. Fill in the fields, then call [Conversation.Ask] once per prompt. It is used by one
// goroutine at a time, and nothing needs to be closed.
type Conversation struct {
	// Client asks the model. Required.
	Client provider.Client
	// Instructions are the system prompt; empty means none.
	Instructions string
	// Tools are what the model may call. The list may change between prompts.
	Tools []LiveTool
	// MaxTurns is how often the model may answer one prompt; all its answers but
	// the last call tools. 0 means 10.
	MaxTurns int
	// Params and FirstEvent are those of a [provider.Request].
	Params     map[string]any
	FirstEvent time.Duration

	// Text, if not nil, gets the parts of each answer's text as they arrive, as
	// [provider.Request] describes it: such answers are not retried.
	Text func(part string)
	// Replied, if not nil, is called after each request to the model. With an
	// error, the reply holds what had come until then; it is never nil.
	Replied func(r *provider.Reply, err error)
	// Called, if not nil, is called after each call of a tool, also of one that
	// does not exist.
	Called func(call provider.Call, result ToolResult)

	messages []provider.Message
}

// LiveTool is a tool that can be called.
type LiveTool struct {
	provider.Tool
	// Call does what the model asks for. Arguments are a JSON object that nobody
	// has checked against the schema. Call returns promptly when ctx ends. Its
	// error ends the conversation's answer; what the model should know of and
	// may try otherwise is a result with IsError.
	Call func(ctx context.Context, arguments json.RawMessage) (ToolResult, error)
}

// ToolResult is what a tool answers the model.
type ToolResult struct {
	// Text goes to the model as it is, whatever its length.
	Text    string
	IsError bool
}

// ErrMaxTurns says that the model still called tools in its last answer that
// Conversation.MaxTurns allows. The calls were answered.
var ErrMaxTurns = errors.New("the model called tools in all answers that it may give to one prompt")

// Ask puts a prompt, lets the model call tools until it calls none, and returns
// its last answer. The calls of an answer are done one after the other, in the
// order in which the model wrote them. Asking again continues the conversation.
//
// The error is that of the client or of a tool, the cause of ctx, or
// [ErrMaxTurns], with which the last answer is returned, too. After all others
// the conversation is as it was before, so that the prompt can be asked again.
func (c *Conversation) Ask(ctx context.Context, prompt string) (answer string, err error) {
	before := len(c.messages)
	c.messages = append(c.messages, provider.Message{Role: provider.User, Text: prompt})
	answer, err = c.answer(ctx)
	if err != nil && !errors.Is(err, ErrMaxTurns) {
		c.messages = c.messages[:before]
	}
	return answer, err
}

func (c *Conversation) answer(ctx context.Context) (answer string, err error) {
	most := c.MaxTurns
	if most == 0 {
		most = defaultMaxTurns
	}
	for range most {
		reply, err := c.Client.Complete(ctx, c.request())
		if c.Replied != nil {
			c.Replied(reply, err)
		}
		if err != nil {
			return "", err
		}
		answer = reply.Message.Text
		c.messages = append(c.messages, reply.Message)
		if len(reply.Message.Calls) == 0 {
			return answer, nil
		}
		results, err := c.call(ctx, reply.Message.Calls)
		if err != nil {
			return "", err
		}
		c.messages = append(c.messages, provider.Message{Role: provider.ToolRole, Results: results})
	}
	return answer, ErrMaxTurns
}

func (c *Conversation) request() *provider.Request {
	r := &provider.Request{
		System: c.Instructions, Messages: c.messages, Params: c.Params, FirstEvent: c.FirstEvent, Text: c.Text,
	}
	for _, t := range c.Tools {
		r.Tools = append(r.Tools, t.Tool)
	}
	return r
}

// call does the calls of an answer.
func (c *Conversation) call(ctx context.Context, calls []provider.Call) ([]provider.Result, error) {
	results := make([]provider.Result, len(calls))
	for i, call := range calls {
		result, err := c.callOne(ctx, call)
		if err != nil {
			return nil, err
		}
		if c.Called != nil {
			c.Called(call, result)
		}
		results[i] = provider.Result{ID: call.ID, Text: result.Text, IsError: result.IsError}
	}
	return results, nil
}

func (c *Conversation) callOne(ctx context.Context, call provider.Call) (ToolResult, error) {
	if call.Malformed || len(call.Arguments) == 0 || call.Arguments[0] != '{' {
		return ToolResult{Text: "error: the arguments are not a JSON object", IsError: true}, nil
	}
	for _, t := range c.Tools {
		if t.Name == call.Name {
			return t.Call(ctx, call.Arguments)
		}
	}
	return ToolResult{Text: fmt.Sprintf("error: there is no tool %q", call.Name), IsError: true}, nil
}
