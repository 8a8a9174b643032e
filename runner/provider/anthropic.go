package provider

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// defaultMaxTokens bounds an answer where the suite does not: Anthropic wants a bound.
const defaultMaxTokens = 4096

// anthropicAPI asks through Anthropic's messages.
type anthropicAPI struct {
	settings
	messages anthropic.MessageService
}

func newAnthropic(s settings) *anthropicAPI {
	// The service rather than the library's client, for the reason that [newOpenAI] tells.
	options := []option.RequestOption{
		option.WithBaseURL(s.address + "/"), option.WithHTTPClient(s.http), option.WithMaxRetries(0),
	}
	if s.key != "" {
		options = append(options, option.WithAPIKey(s.key))
	}
	return &anthropicAPI{s, anthropic.NewMessageService(options...)}
}

func (c *anthropicAPI) Complete(ctx context.Context, r *Request) (*Reply, error) {
	watch := newWatch(ctx, r.FirstEvent)
	defer watch.stop()
	var options []option.RequestOption
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		options = append(options, option.WithJSONSet(jsonKey(name), r.Params[name]))
	}
	stream := c.messages.NewStreaming(watch.ctx, c.params(r), options...)
	a := &anthropicAnswer{}
	err := receive(stream, watch, func(event *anthropic.MessageStreamEventUnion) (begun bool, err error) {
		err = a.add(event)
		return a.size > 0, err
	})
	reply := a.reply(r)
	watch.times(reply)
	switch {
	case err != nil:
		return reply, c.fault(watch, err)
	case a.stop == "":
		return reply, transportError(watch.ctx, c.where, errCutShort)
	}
	return reply, nil
}

func (c *anthropicAPI) params(r *Request) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{Model: c.model, MaxTokens: defaultMaxTokens}
	if r.System != "" {
		p.System = []anthropic.TextBlockParam{{Text: r.System}}
	}
	for i := range r.Messages {
		p.Messages = append(p.Messages, anthropicMessage(&r.Messages[i]))
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, anthropicTool(t))
	}
	if a := r.Answer; a != nil { // a tool in either case: it is what every model here can do
		p.Tools = append(p.Tools, anthropicTool(Tool{a.Name, a.Description, a.Schema}))
		p.ToolChoice = anthropic.ToolChoiceParamOfTool(a.Name)
	}
	return p
}

func anthropicTool(t Tool) anthropic.ToolUnionParam {
	p := &anthropic.ToolParam{Name: t.Name}
	if t.Description != "" {
		p.Description = param.NewOpt(t.Description)
	}
	schema := maps.Clone(t.Parameters)
	p.InputSchema.Properties = schema["properties"]
	if p.InputSchema.Properties == nil {
		p.InputSchema.Properties = map[string]any{}
	}
	delete(schema, "properties")
	delete(schema, "type")
	p.InputSchema.ExtraFields = schema
	return anthropic.ToolUnionParam{OfTool: p}
}

func anthropicMessage(m *Message) anthropic.MessageParam {
	if native, ok := m.native.(anthropic.MessageParam); ok {
		return native
	}
	var blocks []anthropic.ContentBlockParamUnion
	if m.Text != "" || len(m.Calls)+len(m.Results) == 0 {
		blocks = append(blocks, anthropic.NewTextBlock(notEmpty(m.Text)))
	}
	for _, c := range m.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, c.sendable(), c.Name))
	}
	for _, res := range m.Results {
		blocks = append(blocks, anthropic.NewToolResultBlock(res.ID, res.Text, res.IsError))
	}
	if m.Role == Assistant {
		return anthropic.NewAssistantMessage(blocks...)
	}
	return anthropic.NewUserMessage(blocks...)
}

// notEmpty stands in for a text that the API does not take.
func notEmpty(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}

// anthropicAnswer gathers the events of a stream.
type anthropicAnswer struct {
	model, stop string
	blocks      []*anthropicBlock
	usage       Usage
	size        int
}

type anthropicBlock struct {
	typ, id, name   string
	text, signature strings.Builder
	redacted        string
}

func (a *anthropicAnswer) add(e *anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		a.model = e.Message.Model
		a.count(e.Message.Usage.InputTokens, e.Message.Usage.CacheReadInputTokens, e.Message.Usage.CacheCreationInputTokens)
		a.usage.OutputTokens = max(0, e.Message.Usage.OutputTokens)
	case "message_delta":
		a.stop = string(e.Delta.StopReason)
		if e.Usage.JSON.InputTokens.Valid() && e.Usage.InputTokens > 0 {
			a.count(e.Usage.InputTokens, e.Usage.CacheReadInputTokens, e.Usage.CacheCreationInputTokens)
		}
		a.usage.OutputTokens = max(a.usage.OutputTokens, e.Usage.OutputTokens)
	case "content_block_start":
		if len(a.blocks) == maxCalls {
			return errTooLong
		}
		b := &anthropicBlock{typ: e.ContentBlock.Type, id: e.ContentBlock.ID, name: e.ContentBlock.Name, redacted: e.ContentBlock.Data}
		b.text.WriteString(e.ContentBlock.Text + e.ContentBlock.Thinking)
		a.blocks = append(a.blocks, b)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= int64(len(a.blocks)) {
			return &Error{Kind: Unreachable, Message: "the stream is malformed: it goes on with a block that was never begun"}
		}
		b := a.blocks[e.Index]
		text := e.Delta.Text + e.Delta.Thinking + e.Delta.PartialJSON
		b.text.WriteString(text)
		b.signature.WriteString(e.Delta.Signature)
		a.size += len(text) + len(e.Delta.Signature)
	}
	if a.size > maxAnswerBytes {
		return errTooLong
	}
	return nil
}

// count notes the tokens read. Anthropic leaves those of the cache out of the sum.
func (a *anthropicAnswer) count(input, cached, written int64) {
	cached, written = max(0, cached), max(0, written)
	a.usage.InputTokens = max(0, input) + cached + written
	a.usage.CachedTokens, a.usage.CacheWriteTokens = cached, written
}

func (a *anthropicAnswer) reply(r *Request) *Reply {
	reply := &Reply{Message: Message{Role: Assistant}, Model: a.model, Usage: a.usage, Stop: StopReason(a.stop)}
	var blocks []anthropic.ContentBlockParamUnion
	var text, thought strings.Builder
	for _, b := range a.blocks {
		switch b.typ {
		case "text":
			text.WriteString(b.text.String())
			if strings.TrimSpace(b.text.String()) != "" { // the API does not take back an empty one
				blocks = append(blocks, anthropic.NewTextBlock(b.text.String()))
			}
		case "thinking":
			thought.WriteString(b.text.String())
			blocks = append(blocks, anthropic.NewThinkingBlock(b.signature.String(), b.text.String()))
		case "redacted_thinking":
			blocks = append(blocks, anthropic.NewRedactedThinkingBlock(b.redacted))
		case "tool_use":
			call := newCall(b.id, b.name, b.text.String())
			reply.Message.Calls = append(reply.Message.Calls, call)
			blocks = append(blocks, anthropic.NewToolUseBlock(call.ID, call.sendable(), call.Name))
		}
	}
	reply.Message.Text, reply.Thought = text.String(), thought.String()
	if len(blocks) > 0 {
		reply.Message.native = anthropic.NewAssistantMessage(blocks...)
	}
	switch a.stop {
	case "end_turn", "stop_sequence":
		reply.Stop = StopEnd
	case "tool_use":
		reply.Stop = StopCalls
	case "max_tokens", "model_context_window_exceeded":
		reply.Stop = StopLength
	}
	reply.takeAnswer(r.Answer)
	return reply
}

// fault turns an error of the library into one of ours.
func (c *anthropicAPI) fault(w *watch, err error) error {
	if e := w.silence(c.where); e != nil {
		return e
	}
	var api *anthropic.Error
	if errors.As(err, &api) {
		f := faultIn([]byte(api.RawJSON()))
		f.status, f.code = api.StatusCode, f.code+" "+string(api.Type())
		if f.message == "" {
			f.message = messageIn(api.RawJSON())
		}
		if api.Response != nil {
			f.header = api.Response.Header
		}
		return f.error(c.where)
	}
	if _, data, ok := strings.Cut(err.Error(), "received error while streaming: "); ok && json.Valid([]byte(data)) {
		return faultIn([]byte(data)).error(c.where)
	}
	return transportError(w.ctx, c.where, notStream(err))
}
