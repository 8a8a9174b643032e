package model

import (
	"maps"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/surroundings"
	"waza/eval/text"
	"waza/runner/provider"
)

// Options are the keys of a suite's config for the model executors.
type Options struct {
	provider.Endpoint `yaml:",inline"`
	// Parameters of the API under their API names: temperature, max_tokens, top_p, …
	Params map[string]any `yaml:"params"`
	// Start of the system prompt; the skills follow it. Template variables are expanded.
	SystemPrompt string `yaml:"system_prompt"`
	// Approximate number of tokens of filler text before the first prompt; 0 means none. Each
	// trial has a different text, so that the caches of providers have no effect. Records
	// contain the prompt without it.
	ContextTokens int `yaml:"context_tokens" json:",omitempty" jsonschema:"minimum=0,maximum=2000000"`
	// Use the same filler text in all trials.
	ContextShared bool `yaml:"context_shared" json:",omitempty"`
	// Tools that the model can call. Each call is recorded and answered with the tool's result.
	Tools []Tool `yaml:"tools"`
	// Maximum number of the model's answers to one prompt. All answers except the last are tool
	// calls.
	MaxTurns int `yaml:"max_turns" jsonschema:"minimum=1,default=10"`
	// Append the text of the task's files to the first prompt, because a model cannot open
	// files.
	IncludeFiles bool `yaml:"include_files" jsonschema:"default=true"`
}

// Tool is a tool that the model can call.
type Tool struct {
	// Name of the tool.
	Name string `yaml:"name" jsonschema:"required"`
	// Description of the tool for the model.
	Description string `yaml:"description"`
	// JSON Schema of the arguments, an object.
	Parameters map[string]any `yaml:"parameters"`
	// Answer of the tool: a string, in which template variables are expanded, or any other
	// value.
	Result any `yaml:"result"`
	// Error text with which the tool answers instead of a result.
	Error string `yaml:"error"`
}

const defaultMaxTurns = 10

func newOptions() *Options { return &Options{MaxTurns: defaultMaxTurns, IncludeFiles: true} }

// ProviderEndpoint returns the endpoint of the suite's models. Judges use it, too.
func (o *Options) ProviderEndpoint() provider.Endpoint { return o.Endpoint }

// Context returns the size of the filler text and the limit of an answer, both in tokens. A
// value is 0 if the options do not set it.
func (o *Options) Context() (tokens, most int) {
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		switch n := o.Params[name].(type) {
		case int:
			return o.ContextTokens, n
		case int64:
			return o.ContextTokens, int(n)
		case float64:
			return o.ContextTokens, int(n)
		}
	}
	return o.ContextTokens, 0
}

// ownParams are request parameters that waza sets itself.
var ownParams = []string{"model", "messages", "system", "stream", "stream_options", "tools", "tool_choice", "n"}

// responseFormat is a parameter that other APIs than that of OpenAI lack.
const responseFormat = "response_format"

// toolName matches the names that both APIs accept.
var toolName = text.Pattern(`^[a-zA-Z0-9_-]{1,64}$`)

func check(c *eval.Check, api provider.API, o *Options) {
	o.Endpoint.Check(c)
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		switch {
		case name == responseFormat && api != provider.OpenAI:
			c.Errorf(decode.At("params", name), decode.CodeInvalidValue, "params.%s cannot be set: only the API of OpenAI has it", name)
		case slices.Contains(ownParams, name):
			c.Errorf(decode.At("params", name), decode.CodeInvalidValue, "params.%s cannot be set: waza sets it itself", name)
		}
	}
	if o.ContextShared && o.ContextTokens == 0 {
		c.Warnf(decode.At("context_shared"), decode.CodeNoEffect, "context_shared has no effect without context_tokens")
	}
	var names []string
	for i, t := range o.Tools {
		at := func(elems ...any) decode.Path { return append(decode.At("tools", i), elems...) }
		switch {
		case !toolName().MatchString(t.Name):
			c.Errorf(at("name"), decode.CodeInvalidValue,
				"tools[%d].name: invalid tool name %q; use 1 to 64 letters, digits, underscores and dashes", i, t.Name)
		case slices.Contains(names, t.Name):
			c.Errorf(at("name"), decode.CodeInvalidValue, "tools[%d].name: duplicate tool name %q", i, t.Name)
		}
		names = append(names, t.Name)
		if err := compile(t.Parameters); err != "" {
			c.Errorf(at("parameters"), decode.CodeBadSchema, "tools[%d].parameters: %s", i, err)
		}
		if t.Result != nil && t.Error != "" {
			c.Warnf(at("result"), decode.CodeNoEffect, "tools[%d].result has no effect: error overrides it", i)
		}
	}
}

// compile returns an error text for an invalid schema of a tool's arguments, or "".
func compile(schema map[string]any) string {
	if schema == nil {
		return ""
	}
	if typ, ok := schema["type"]; ok && typ != "object" {
		return "type must be object, because the arguments of a tool are an object"
	}
	if _, err := surroundings.MockSchema(schema); err != nil {
		return err.Error()
	}
	return ""
}
