package provider

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/tmaxmax/go-sse"

	"waza/runner/record"
)

// defaultMaxTokens limits an answer if the suite does not, because Anthropic requires a limit.
const defaultMaxTokens = 4096

// anthropicVersion is the version of the API that this file implements.
const anthropicVersion = "2023-06-01"

// anthropicAPI implements Anthropic's messages API.
type anthropicAPI struct{ settings }

func (c anthropicAPI) address(base *url.URL) *url.URL { return base.JoinPath("v1", "messages") }

func (c anthropicAPI) sign(h http.Header) {
	h.Set("Anthropic-Version", anthropicVersion)
	if c.key != "" {
		h.Set("X-Api-Key", c.key)
	}
}

func (c anthropicAPI) body(r *Request) object {
	body := object{"model": c.model, "max_tokens": defaultMaxTokens, "stream": true}
	if r.System != "" {
		body["system"] = []any{textBlock(r.System)}
	}
	messages := make([]any, len(r.Messages))
	for i := range r.Messages {
		messages[i] = anthropicMessage(&r.Messages[i])
	}
	body["messages"] = messages
	var tools []any
	for _, t := range r.Tools {
		tools = append(tools, anthropicTool(t))
	}
	if a := r.Answer; a != nil { // as a tool in both cases, because every model here supports tools
		tools = append(tools, anthropicTool(Tool{a.Name, a.Description, a.Schema}))
		body["tool_choice"] = object{"type": "tool", "name": a.Name}
	}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	if r.Effort != "" {
		// A thinking budget would exclude forced tool calls, with which judges answer.
		body["output_config"] = object{"effort": r.Effort}
	}
	return body
}

func anthropicTool(t Tool) object {
	schema := object{"properties": object{}}
	maps.Copy(schema, t.Parameters)
	schema["type"] = "object"
	tool := object{"name": t.Name, "input_schema": schema}
	if t.Description != "" {
		tool["description"] = t.Description
	}
	return tool
}

func anthropicMessage(m *Message) object {
	if native, ok := m.native.(anthropicTurn); ok {
		return native.message
	}
	var blocks []any
	if m.Text != "" || len(m.Calls)+len(m.Results) == 0 {
		blocks = append(blocks, textBlock(notEmpty(m.Text)))
	}
	for _, c := range m.Calls {
		blocks = append(blocks, c.block())
	}
	for _, res := range m.Results {
		blocks = append(blocks, object{
			"type": "tool_result", "tool_use_id": res.ID, "content": []any{textBlock(res.Text)}, "is_error": res.IsError,
		})
	}
	role := "user"
	if m.Role == Assistant {
		role = "assistant"
	}
	return object{"role": role, "content": blocks}
}

// anthropicTurn is a turn of the model in the form in which the API requires it back. It must
// not be changed.
type anthropicTurn struct{ message object }

func textBlock(text string) object { return object{"type": "text", "text": text} }

func (c *Call) block() object {
	return object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.sendable()}
}

// notEmpty replaces an empty text, which the API rejects.
func notEmpty(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}

// anthropicEvent is an event of a stream.
type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string         `json:"model"`
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type     string `json:"type"`
		ID       string `json:"id"`
		Name     string `json:"name"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Data     string `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"`
}

type anthropicUsage struct {
	InputTokens              count `json:"input_tokens"`
	CacheReadInputTokens     count `json:"cache_read_input_tokens"`
	CacheCreationInputTokens count `json:"cache_creation_input_tokens"`
	OutputTokens             count `json:"output_tokens"`
}

func (c anthropicAPI) answer() answer { return &anthropicAnswer{where: c.where} }

// anthropicAnswer collects the events of a stream.
type anthropicAnswer struct {
	where, model, stop string
	blocks             []*anthropicBlock
	usage              record.Usage
	cached             Cached
	size               int
}

type anthropicBlock struct {
	typ, id, name   string
	text, signature strings.Builder
	redacted        string
}

func (a *anthropicAnswer) started() bool { return a.size > 0 }
func (a *anthropicAnswer) ended() bool   { return a.stop != "" }

func (a *anthropicAnswer) add(sent sse.Event) (step, error) {
	if sent.Type == "ping" {
		return step{idle: true}, nil
	}
	var e anthropicEvent
	if err := readEvent(sent.Data, &e); err != nil {
		return step{}, err
	}
	var s step
	switch e.Type {
	case "ping":
		return step{idle: true}, nil
	case "error":
		return step{}, faultIn([]byte(sent.Data)).error(a.where)
	case "message_start":
		a.model = e.Message.Model
		a.count(&e.Message.Usage)
		a.usage.OutputTokens = int64(e.Message.Usage.OutputTokens)
	case "message_delta":
		a.stop = e.Delta.StopReason
		if e.Usage.InputTokens > 0 {
			a.count(&e.Usage)
		}
		a.usage.OutputTokens = max(a.usage.OutputTokens, int64(e.Usage.OutputTokens))
	case "content_block_start":
		if len(a.blocks) == maxCalls {
			return step{}, errTooLong
		}
		start := &e.ContentBlock
		b := &anthropicBlock{typ: start.Type, id: start.ID, name: start.Name, redacted: start.Data}
		a.blocks = append(a.blocks, b)
		s.text = a.write(b, start.Text, start.Thinking)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= len(a.blocks) {
			return step{}, &Error{Kind: Unreachable, Message: "malformed stream: it continues a block that did not start"}
		}
		b := a.blocks[e.Index]
		b.signature.WriteString(e.Delta.Signature)
		a.size += len(e.Delta.Signature)
		s.text = a.write(b, e.Delta.Text, e.Delta.Thinking+e.Delta.PartialJSON)
	}
	if a.size > maxAnswerBytes {
		return s, errTooLong
	}
	return s, nil
}

// write appends to a block, and returns the part that belongs to the answer's text.
func (a *anthropicAnswer) write(b *anthropicBlock, text, other string) string {
	b.text.WriteString(text + other)
	a.size += len(text) + len(other)
	if b.typ != "text" {
		return ""
	}
	return text + other
}

// count records the input tokens. Anthropic's number excludes cached tokens, so they are added.
func (a *anthropicAnswer) count(u *anthropicUsage) {
	a.usage.InputTokens = int64(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens)
	a.cached = Cached{Read: int64(u.CacheReadInputTokens), Written: int64(u.CacheCreationInputTokens)}
}

func (a *anthropicAnswer) reply() *Reply {
	reply := &Reply{Message: Message{Role: Assistant}, Model: a.model, Usage: a.usage, Cached: a.cached, Stop: StopReason(a.stop)}
	var blocks []any
	var text, thought strings.Builder
	for _, b := range a.blocks {
		switch b.typ {
		case "text":
			text.WriteString(b.text.String())
			if strings.TrimSpace(b.text.String()) != "" { // the API rejects an empty block
				blocks = append(blocks, textBlock(b.text.String()))
			}
		case "thinking":
			thought.WriteString(b.text.String())
			blocks = append(blocks, object{"type": "thinking", "thinking": b.text.String(), "signature": b.signature.String()})
		case "redacted_thinking":
			blocks = append(blocks, object{"type": "redacted_thinking", "data": b.redacted})
		case "tool_use":
			call := newCall(b.id, b.name, b.text.String())
			reply.Message.Calls = append(reply.Message.Calls, call)
			blocks = append(blocks, call.block())
		}
	}
	reply.Message.Text, reply.Thought = text.String(), thought.String()
	if len(blocks) > 0 {
		reply.Message.native = anthropicTurn{object{"role": "assistant", "content": blocks}}
	}
	switch a.stop {
	case "end_turn", "stop_sequence":
		reply.Stop = StopEnd
	case "tool_use":
		reply.Stop = StopCalls
	case "max_tokens", "model_context_window_exceeded":
		reply.Stop = StopLength
	}
	return reply
}
