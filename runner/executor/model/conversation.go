package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"waza/runner/provider"
)

// Conversation lets a model answer prompts and call tools. A tool can run anywhere: the
// executors of this package answer calls with the results in the suite. Fill in the fields, then
// call [Conversation.Ask] once per prompt. A Conversation must not be used concurrently, and
// needs no closing.
type Conversation struct {
	// Client asks the model. Required.
	Client provider.Client
	// Instructions are the system prompt; empty means none.
	Instructions string
	// History contains the messages before the first prompt, oldest first.
	History []provider.Message
	// Tools are the tools that the model can call. The list can change between prompts.
	Tools []LiveTool
	// MaxTurns is the maximum number of the model's answers to one prompt. All answers except
	// the last are tool calls. 0 means 10.
	MaxTurns int
	// Params and FirstEvent are passed to each [provider.Request].
	Params     map[string]any
	FirstEvent time.Duration

	// Text, if not nil, receives the text of each answer in parts as they arrive. Such answers
	// are not retried, see [provider.Request].
	Text func(part string)
	// Replied, if not nil, is called after each request to the model. With an error, the reply
	// contains what arrived before the error. It is never nil.
	Replied func(r *provider.Reply, err error)
	// Called, if not nil, is called after each tool call, including calls of unknown tools.
	Called func(call provider.Call, result ToolResult)

	messages []provider.Message // after History
}

// LiveTool is a tool that a model can call.
type LiveTool struct {
	provider.Tool
	// Call executes a call of the model. The arguments are a JSON object that was not validated
	// against the schema. Call returns promptly when ctx ends. Its error ends Ask. For an error
	// that the model should see and can react to, return a result with IsError.
	Call func(ctx context.Context, arguments json.RawMessage) (ToolResult, error)
}

// ToolResult is the answer of a tool to the model.
type ToolResult struct {
	// Text is sent to the model unchanged, whatever its length.
	Text    string
	IsError bool
}

// ErrMaxTurns means that the model still called tools in the last answer that
// Conversation.MaxTurns allows. The calls were answered.
var ErrMaxTurns = errors.New("the model called tools in all answers to one prompt")

// Ask sends a prompt and lets the model call tools until it calls none, and returns its last
// answer. It executes the calls of an answer one after the other, in the order of the answer. A
// further Ask continues the conversation.
//
// The error is an error of the client or of a tool, the cause of ctx, or [ErrMaxTurns]. With
// ErrMaxTurns, Ask also returns the last answer. After any other error the conversation is
// unchanged, so that the prompt can be sent again.
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
	most := cmp.Or(c.MaxTurns, defaultMaxTurns)
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
		System: c.Instructions, Messages: slices.Concat(c.History, c.messages), Params: c.Params, FirstEvent: c.FirstEvent, Text: c.Text,
	}
	for _, t := range c.Tools {
		r.Tools = append(r.Tools, t.Tool)
	}
	return r
}

// call executes the calls of an answer.
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
