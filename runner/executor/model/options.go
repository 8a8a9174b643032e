package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/provider"
)

// Options are the keys of a suite's config that belong to the model executors.
type Options struct {
	provider.Endpoint `yaml:",inline"`
	// Parameters of the API, as it names them: temperature, max_tokens, top_p, …
	Params map[string]any `yaml:"params"`
	// What the system prompt begins with; the skills come after it. May use template variables.
	SystemPrompt string `yaml:"system_prompt"`
	// About how many tokens of filler text come before the first prompt; none when 0. Each trial has another text, so that
	// the caches of providers do not help. Records keep the prompt without it.
	ContextTokens int `yaml:"context_tokens" json:",omitempty" jsonschema:"minimum=0,maximum=2000000"`
	// Give all trials the same filler text.
	ContextShared bool `yaml:"context_shared" json:",omitempty"`
	// Tools the model may call. Each call is recorded and answered with the tool's result.
	Tools []Tool `yaml:"tools"`
	// Most answers of the model to one prompt; those between the first and the last call tools.
	MaxTurns int `yaml:"max_turns" jsonschema:"minimum=1,default=10"`
	// Put the text of the task's files after the first prompt: a model cannot open them.
	IncludeFiles bool `yaml:"include_files" jsonschema:"default=true"`
}

// Tool is something the model may call.
type Tool struct {
	// Name of the tool.
	Name string `yaml:"name" jsonschema:"required"`
	// What the tool does, for the model.
	Description string `yaml:"description"`
	// JSON Schema of the arguments, an object.
	Parameters map[string]any `yaml:"parameters"`
	// What the tool answers: a text, which may use template variables, or any value.
	Result any `yaml:"result"`
	// Text of the error the tool answers with, in place of a result.
	Error string `yaml:"error"`
}

const defaultMaxTurns = 10

func newOptions() *Options { return &Options{MaxTurns: defaultMaxTurns, IncludeFiles: true} }

// ProviderEndpoint is where the suite's models are served; judges ask there too.
func (o *Options) ProviderEndpoint() provider.Endpoint { return o.Endpoint }

// Context is how many tokens of filler text the options ask for, and how many tokens an
// answer may have; 0 when they do not say.
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

// ownParams are what waza itself puts into a request.
var ownParams = []string{"model", "messages", "system", "stream", "stream_options", "tools", "tool_choice", "n", "response_format"}

// toolName is what both APIs take.
var toolName = text.Pattern(`^[a-zA-Z0-9_-]{1,64}$`)

func check(c *eval.Check, o *Options) {
	o.Endpoint.Check(c)
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		if slices.Contains(ownParams, name) {
			c.Errorf(decode.At("params", name), decode.CodeInvalidValue, "params.%s: waza sets it itself", name)
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
			c.Errorf(at("name"), decode.CodeInvalidValue, "tools[%d].name: %q cannot be the name of a tool: up to 64 letters, digits, underscores and dashes", i, t.Name)
		case slices.Contains(names, t.Name):
			c.Errorf(at("name"), decode.CodeInvalidValue, "tools[%d].name: another tool is called %q", i, t.Name)
		}
		names = append(names, t.Name)
		if err := compile(t.Parameters); err != "" {
			c.Errorf(at("parameters"), decode.CodeBadSchema, "tools[%d].parameters: %s", i, err)
		}
		if t.Result != nil && t.Error != "" {
			c.Warnf(at("result"), decode.CodeNoEffect, "tools[%d].result has no effect beside error", i)
		}
	}
}

// compile says what is wrong with the schema of a tool's arguments; "" when nothing is.
func compile(schema map[string]any) string {
	if schema == nil {
		return ""
	}
	if typ, ok := schema["type"]; ok && typ != "object" {
		return "the arguments of a tool are an object: type must be object"
	}
	data, err := json.Marshal(schema)
	if err != nil {
		return "not a JSON Schema: " + err.Error()
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return "not a JSON Schema: " + err.Error()
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is fetched
	if err := compiler.AddResource("mem:///parameters", doc); err != nil {
		return "not a JSON Schema: " + err.Error()
	}
	if _, err := compiler.Compile("mem:///parameters"); err != nil {
		return "not a valid JSON Schema: " + strings.Join(strings.Fields(err.Error()), " ")
	}
	return ""
}
