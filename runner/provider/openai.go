package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tmaxmax/go-sse"

	"waza/runner/record"
)

// openAI implements chat completions, the API of OpenAI and compatible servers.
type openAI struct{ settings }

func (c openAI) address(base *url.URL) *url.URL {
	return c.versioned(base.JoinPath("chat", "completions"))
}

// versioned adds the version of the API to an address.
func (c openAI) versioned(u *url.URL) *url.URL {
	if c.version != "" {
		query := u.Query()
		query.Set("api-version", c.version)
		u.RawQuery = query.Encode()
	}
	return u
}

func (c openAI) sign(h http.Header) {
	switch {
	case c.version != "":
		h.Set("Api-Key", c.key)
	case c.key != "":
		h.Set("Authorization", "Bearer "+c.key)
	}
}

func (c openAI) body(r *Request) object {
	var messages, tools []any
	if r.System != "" {
		messages = append(messages, object{"role": "system", "content": r.System})
	}
	for i := range r.Messages {
		messages = appendOpenAI(messages, &r.Messages[i])
	}
	for _, t := range r.Tools {
		tools = append(tools, openAITool(t))
	}
	body := object{
		"model": c.model, "messages": messages,
		"stream": true, "stream_options": object{"include_usage": true},
	}
	switch a := r.Answer; {
	case a == nil:
	case a.AsSchema:
		body["response_format"] = object{
			"type":        "json_schema",
			"json_schema": object{"name": a.Name, "description": a.Description, "schema": a.Schema},
		}
	default:
		tools = append(tools, openAITool(Tool{a.Name, a.Description, a.Schema}))
		body["tool_choice"] = object{"type": "function", "function": object{"name": a.Name}}
	}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	if r.Effort != "" {
		body["reasoning_effort"] = r.Effort
	}
	return body
}

func openAITool(t Tool) object {
	f := object{"name": t.Name, "parameters": t.Parameters}
	if t.Parameters == nil {
		f["parameters"] = object{"type": "object", "properties": object{}}
	}
	if t.Description != "" {
		f["description"] = t.Description
	}
	return object{"type": "function", "function": f}
}

// appendOpenAI appends a message. Each tool result becomes a message of its own.
func appendOpenAI(messages []any, m *Message) []any {
	switch m.Role {
	case Assistant:
		turn := object{"role": "assistant"}
		if m.Text != "" || len(m.Calls) == 0 {
			turn["content"] = m.Text
		}
		var calls []any
		for _, c := range m.Calls {
			calls = append(calls, object{
				"id": c.ID, "type": "function",
				"function": object{"name": c.Name, "arguments": string(c.sendable())},
			})
		}
		if len(calls) > 0 {
			turn["tool_calls"] = calls
		}
		return append(messages, turn)
	case ToolRole:
		for _, res := range m.Results {
			messages = append(messages, object{"role": "tool", "tool_call_id": res.ID, "content": res.Text})
		}
		return messages
	}
	return append(messages, object{"role": "user", "content": m.Text})
}

// openAIChunk is an event of a stream.
type openAIChunk struct {
	Error   json.RawMessage `json:"error"`
	Model   string          `json:"model"`
	Choices []struct {
		Index        count       `json:"index"`
		Delta        openAIDelta `json:"delta"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		PromptTokens        count `json:"prompt_tokens"`
		CompletionTokens    count `json:"completion_tokens"`
		TotalTokens         count `json:"total_tokens"`
		PromptTokensDetails struct {
			CachedTokens count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Cost float64 `json:"cost"` // in US dollars, from OpenRouter
	} `json:"usage"`
}

type openAIDelta struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
	// The model's thoughts; each server uses one of the two.
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        string            `json:"reasoning"`
	ToolCalls        []openAICallDelta `json:"tool_calls"`
}

type openAICallDelta struct {
	Index    count  `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (c openAI) answer() answer { return &openAIAnswer{where: c.where} }

// openAIAnswer collects the chunks of a stream.
type openAIAnswer struct {
	where, model, finish string
	text, thought        strings.Builder
	refused              bool
	calls                []*openAICall
	usage                record.Usage
	cached               Cached
	size                 int
}

type openAICall struct {
	index    count
	id, name string
	args     strings.Builder
}

func (a *openAIAnswer) started() bool { return a.size > 0 }
func (a *openAIAnswer) ended() bool   { return a.finish != "" }

func (a *openAIAnswer) add(e sse.Event) (step, error) {
	if strings.HasPrefix(e.Data, "[DONE]") {
		return step{idle: true, last: true}, nil
	}
	var chunk openAIChunk
	if err := readEvent(e.Data, &chunk); err != nil {
		return step{}, err
	}
	if len(chunk.Error) > 0 && !bytes.Equal(chunk.Error, []byte("null")) {
		return step{}, faultIn([]byte(e.Data)).error(a.where)
	}
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if u := chunk.Usage; u.TotalTokens > 0 || u.PromptTokens > 0 || u.CompletionTokens > 0 {
		a.usage = record.Usage{InputTokens: int64(u.PromptTokens), OutputTokens: int64(u.CompletionTokens), CostUSD: max(0, u.Cost)}
		a.cached = Cached{Read: int64(u.PromptTokensDetails.CachedTokens)}
	}
	var s step
	for i := range chunk.Choices {
		choice := &chunk.Choices[i]
		if choice.Index != 0 {
			continue // with n > 1, waza uses the first answer
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		s.text += a.addDelta(&choice.Delta)
		for j := range choice.Delta.ToolCalls {
			if err := a.addCall(&choice.Delta.ToolCalls[j]); err != nil {
				return s, err
			}
		}
	}
	if a.size > maxAnswerBytes {
		return s, errTooLong
	}
	return s, nil
}

func (a *openAIAnswer) addDelta(d *openAIDelta) (text string) {
	text = d.Content + d.Refusal
	a.text.WriteString(text)
	a.refused = a.refused || d.Refusal != ""
	thought := cmp.Or(d.ReasoningContent, d.Reasoning)
	a.thought.WriteString(thought)
	a.size += len(text) + len(thought)
	return text
}

// maxCalls is the maximum number of tool calls in one answer.
const maxCalls = 128

func (a *openAIAnswer) addCall(d *openAICallDelta) error {
	var call *openAICall
	for _, c := range a.calls {
		// Some servers number all calls 0; only their ids differ.
		if c.index == d.Index && (d.ID == "" || d.ID == c.id) {
			call = c
		}
	}
	if call == nil {
		if len(a.calls) == maxCalls {
			return errTooLong
		}
		call = &openAICall{index: d.Index, id: d.ID}
		a.calls = append(a.calls, call)
	}
	if call.name == "" { // some servers send it once, others with every delta
		call.name = d.Function.Name
	}
	call.args.WriteString(d.Function.Arguments)
	a.size += len(d.Function.Arguments) + len(d.Function.Name)
	return nil
}

func (a *openAIAnswer) reply() *Reply {
	reply := &Reply{
		Message: Message{Role: Assistant, Text: a.text.String()}, Thought: a.thought.String(),
		Model: a.model, Usage: a.usage, Cached: a.cached,
	}
	for i, c := range a.calls {
		if c.id == "" {
			c.id = fmt.Sprintf("call_%d", i+1)
		}
		reply.Message.Calls = append(reply.Message.Calls, newCall(c.id, c.name, c.args.String()))
	}
	switch {
	case a.refused, a.finish == "content_filter":
		reply.Stop = StopRefusal
	case len(a.calls) > 0:
		reply.Stop = StopCalls
	case a.finish == "stop":
		reply.Stop = StopEnd
	default:
		reply.Stop = StopReason(a.finish)
	}
	return reply
}
