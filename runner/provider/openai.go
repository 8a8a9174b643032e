package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

// openAI asks through chat completions, which OpenAI and all who are compatible
// with it have.
type openAI struct {
	settings
	completions openai.ChatCompletionService
}

func newOpenAI(s settings) *openAI {
	// The service rather than the library's client: the client takes keys and
	// addresses from the environment by itself, and would send a key of OpenAI's
	// to a server that is none of theirs.
	options := []option.RequestOption{
		option.WithBaseURL(s.address + "/"), option.WithHTTPClient(s.http), option.WithMaxRetries(0),
	}
	switch {
	case s.version != "":
		options = append(options, option.WithQuery("api-version", s.version), option.WithHeader("Api-Key", s.key))
	case s.key != "":
		options = append(options, option.WithAPIKey(s.key))
	}
	return &openAI{s, openai.NewChatCompletionService(options...)}
}

func (c *openAI) Complete(ctx context.Context, r *Request) (*Reply, error) {
	watch := newWatch(ctx, r.FirstEvent)
	defer watch.stop()
	stream := c.completions.NewStreaming(watch.ctx, c.params(r), paramOptions(r.Params)...)
	a := &openAIAnswer{}
	err := receive(stream, watch, func(chunk *openai.ChatCompletionChunk) (begun bool, err error) {
		err = a.add(chunk)
		return a.size > 0, err
	})
	reply := a.reply(r)
	watch.times(reply)
	switch {
	case err != nil:
		return reply, c.fault(watch, err)
	case a.finish == "":
		return reply, transportError(watch.ctx, c.where, errCutShort)
	}
	return reply, nil
}

func (c *openAI) params(r *Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:         c.model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if r.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(r.System))
	}
	for i := range r.Messages {
		p.Messages = append(p.Messages, openAIMessages(&r.Messages[i])...)
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, openAITool(t))
	}
	switch a := r.Answer; {
	case a == nil:
	case a.AsSchema:
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: a.Name, Description: param.NewOpt(a.Description), Schema: a.Schema},
		}
	default:
		p.Tools = append(p.Tools, openAITool(Tool{a.Name, a.Description, a.Schema}))
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: a.Name})
	}
	return p
}

func openAITool(t Tool) openai.ChatCompletionToolUnionParam {
	f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: t.Parameters}
	if t.Parameters == nil {
		f.Parameters = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	if t.Description != "" {
		f.Description = param.NewOpt(t.Description)
	}
	return openai.ChatCompletionFunctionTool(f)
}

func openAIMessages(m *Message) []openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case Assistant:
		var a openai.ChatCompletionAssistantMessageParam
		if m.Text != "" || len(m.Calls) == 0 {
			a.Content.OfString = param.NewOpt(m.Text)
		}
		for _, c := range m.Calls {
			a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID:       c.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(c.sendable())},
				},
			})
		}
		return []openai.ChatCompletionMessageParamUnion{{OfAssistant: &a}}
	case ToolRole:
		out := make([]openai.ChatCompletionMessageParamUnion, len(m.Results))
		for i, res := range m.Results {
			out[i] = openai.ToolMessage(res.Text, res.ID)
		}
		return out
	}
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(m.Text)}
}

// sendable are the arguments in a form that APIs take back: an object.
func (c *Call) sendable() json.RawMessage {
	if c.Malformed || len(c.Arguments) == 0 || c.Arguments[0] != '{' {
		return json.RawMessage("{}")
	}
	return c.Arguments
}

// paramOptions puts the parameters of a request into its body as they are.
func paramOptions(params map[string]any) []option.RequestOption {
	var out []option.RequestOption
	for _, name := range slices.Sorted(maps.Keys(params)) {
		out = append(out, option.WithJSONSet(jsonKey(name), params[name]))
	}
	return out
}

// jsonKey writes a key so that the library takes it for one key and no path.
var jsonKey = strings.NewReplacer(`\`, `\\`, ".", `\.`, "*", `\*`, "?", `\?`, "|", `\|`, "#", `\#`, "@", `\@`, "!", `\!`, ":", `\:`).Replace

// openAIAnswer gathers the chunks of a stream.
type openAIAnswer struct {
	model, finish string
	text, thought strings.Builder
	refused       bool
	calls         []*openAICall
	usage         Usage
	size          int
}

type openAICall struct {
	index    int64
	id, name string
	args     strings.Builder
}

func (a *openAIAnswer) add(chunk *openai.ChatCompletionChunk) error {
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if u := chunk.Usage; u.TotalTokens > 0 || u.PromptTokens > 0 || u.CompletionTokens > 0 {
		a.usage = Usage{
			InputTokens: max(0, u.PromptTokens), OutputTokens: max(0, u.CompletionTokens),
			CachedTokens: max(0, u.PromptTokensDetails.CachedTokens), CostUSD: extraCost(u.JSON.ExtraFields),
		}
	}
	for i := range chunk.Choices {
		choice := &chunk.Choices[i]
		if choice.Index != 0 {
			continue // n > 1: waza takes the first answer
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		d := &choice.Delta
		a.text.WriteString(d.Content)
		a.text.WriteString(d.Refusal)
		a.refused = a.refused || d.Refusal != ""
		thought := extraText(d.JSON.ExtraFields, "reasoning_content", "reasoning")
		a.thought.WriteString(thought)
		a.size += len(d.Content) + len(d.Refusal) + len(thought)
		for j := range d.ToolCalls {
			if err := a.addCall(&d.ToolCalls[j]); err != nil {
				return err
			}
		}
	}
	if a.size > maxAnswerBytes {
		return errTooLong
	}
	return nil
}

// maxCalls bounds the tool calls of one answer.
const maxCalls = 128

func (a *openAIAnswer) addCall(d *openai.ChatCompletionChunkChoiceDeltaToolCall) error {
	var call *openAICall
	for _, c := range a.calls {
		// Some servers number all calls 0 and tell them apart by their id.
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
	if call.name == "" { // some send it once, some with every delta
		call.name = d.Function.Name
	}
	call.args.WriteString(d.Function.Arguments)
	a.size += len(d.Function.Arguments) + len(d.Function.Name)
	return nil
}

// extraText reads a text that the library does not know.
func extraText(fields map[string]respjson.Field, names ...string) string {
	for _, name := range names {
		var text string
		if f, ok := fields[name]; ok && json.Unmarshal([]byte(f.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// extraCost reads the cost that OpenRouter tells.
func extraCost(fields map[string]respjson.Field) float64 {
	var usd float64
	if f, ok := fields["cost"]; ok && json.Unmarshal([]byte(f.Raw()), &usd) == nil && usd > 0 {
		return usd
	}
	return 0
}

func (a *openAIAnswer) reply(r *Request) *Reply {
	reply := &Reply{
		Message: Message{Role: Assistant, Text: a.text.String()}, Thought: a.thought.String(),
		Model: a.model, Usage: a.usage,
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
	reply.takeAnswer(r.Answer)
	return reply
}

// takeAnswer moves the call that stands for the answer to where it belongs. A
// model that wrote the JSON as text instead is understood as well.
func (r *Reply) takeAnswer(a *Answer) {
	if a == nil {
		return
	}
	for _, c := range r.Message.Calls {
		if c.Name == a.Name && !c.Malformed && len(c.Arguments) > 0 && c.Arguments[0] == '{' {
			r.Answer = c.Arguments
			return
		}
	}
	r.Answer = jsonObject(r.Message.Text)
}

// jsonObject finds the one JSON object that a text consists of, be there a
// Markdown fence around it or not; nil when there is none.
func jsonObject(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		_, body, _ := strings.Cut(rest, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}

// fault turns an error of the library into one of ours.
func (c *openAI) fault(w *watch, err error) error {
	if e := w.silence(c.where); e != nil {
		return e
	}
	var api *openai.Error
	if errors.As(err, &api) {
		f := fault{status: api.StatusCode, code: api.Code + " " + api.Type, message: api.Message}
		if api.Response != nil {
			f.header = api.Response.Header
		}
		if f.message == "" {
			f.message = messageIn(bodyOf(api))
		}
		return f.error(c.where)
	}
	var streamed *ssestream.StreamError
	if errors.As(err, &streamed) {
		return faultIn(streamed.Event.Data).error(c.where)
	}
	return transportError(w.ctx, c.where, notStream(err))
}

// bodyOf is what the library has left of the body of an error.
func bodyOf(e *openai.Error) string {
	if raw := e.RawJSON(); raw != "" || e.Response == nil || e.Response.Body == nil {
		return raw
	}
	data, err := io.ReadAll(io.LimitReader(e.Response.Body, 16*maxMessage))
	if err != nil {
		return ""
	}
	return string(data)
}

// notStream names what a library says of a stream that is none.
func notStream(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &typ) {
		return fmt.Errorf("the stream is malformed: %w", err)
	}
	return err
}

// faultIn reads an error that came in the midst of a stream.
func faultIn(data []byte) fault {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	f := fault{}
	if json.Unmarshal(data, &body) != nil {
		return f
	}
	var e struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(body.Error, &e) != nil {
		if json.Unmarshal(body.Error, &f.message) != nil {
			f.message = string(body.Error)
		}
		return f
	}
	f.message = e.Message
	f.code = fmt.Sprint(e.Type, " ", e.Code)
	if status, ok := e.Code.(float64); ok && status >= 300 && status < 600 { // as OpenRouter does
		f.status = int(status)
	}
	return f
}

// messageIn finds the message in an error body that is not as the library wants it.
func messageIn(raw string) string {
	f := faultIn([]byte(raw))
	if f.message != "" {
		return f.message
	}
	var body struct{ Message, Detail string }
	if json.Unmarshal([]byte(raw), &body) == nil && body.Message+body.Detail != "" {
		return body.Message + body.Detail
	}
	return raw
}
