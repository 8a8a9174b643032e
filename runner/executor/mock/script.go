package mock

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/record"
)

// Options are the keys of a suite's config for the mock executor.
type Options struct {
	// Behavior of the mock. Without it, every reply is "Mock response for: <prompt>", with a line "Analyzed N file(s)" if the task has files.
	Mock *Script `yaml:"mock"`
}

// Script defines the behavior of the mock.
type Script struct {
	// Milliseconds before each reply: a number, or {min, max} for a random delay.
	LatencyMS Latency `yaml:"latency_ms"`
	// Seed of all random values. The same seed gives the same run.
	Seed uint64 `yaml:"seed"`
	// Share of trials that end in error, 0 to 1.
	ErrorRate float64 `yaml:"error_rate" jsonschema:"minimum=0,maximum=1"`
	// Replies to prompts. The first one that matches is used.
	Replies []Reply `yaml:"replies"`
}

// Reply is the behavior of the mock for matching prompts.
type Reply struct {
	// Regular expression (RE2) for the prompt. By default every prompt matches.
	Match string `yaml:"match"`
	// Numbers of the trials to which the reply applies; all by default.
	Trials []int `yaml:"trials"`
	// Answer of the mock. Template variables are expanded.
	Output string `yaml:"output"`
	// Tool calls to record.
	ToolCalls []ToolCall `yaml:"tool_calls"`
	// Files to write to the workspace.
	Files []File `yaml:"files"`
	// Tokens to report.
	Usage *Usage `yaml:"usage"`
	// Skills to report as used.
	Skills []string `yaml:"skills"`
	// Text of an error with which the trial ends.
	Error string `yaml:"error"`
}

// ToolCall is a tool call to record.
type ToolCall struct {
	// Name of the tool.
	Name string `yaml:"name" jsonschema:"required"`
	// Arguments of the call.
	Arguments map[string]any `yaml:"arguments"`
	// Answer of the tool.
	Result any `yaml:"result"`
}

// File is a file to write.
type File struct {
	// Path in the workspace.
	Path string `yaml:"path" jsonschema:"required"`
	// Text of the file. Template variables are expanded.
	Content string `yaml:"content"`
}

// Usage is the number of tokens to report.
type Usage struct {
	// Number of input tokens.
	InputTokens int64 `yaml:"input_tokens" jsonschema:"minimum=0"`
	// Number of output tokens.
	OutputTokens int64 `yaml:"output_tokens" jsonschema:"minimum=0"`
	// Cost in US dollars.
	CostUSD float64 `yaml:"cost_usd" jsonschema:"minimum=0"`
}

func (u Usage) usage() record.Usage {
	return record.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostUSD: u.CostUSD}
}

// Latency is a range of milliseconds. In YAML it is a number, or a map of min and max.
type Latency struct {
	Min float64
	Max float64
}

// UnmarshalYAML accepts a number or a map.
func (l *Latency) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if err := n.Decode(&l.Min); err != nil {
			return errors.New("latency_ms must be a number of milliseconds, or a map with min and max")
		}
		l.Max = l.Min
	} else {
		r := struct{ Min, Max float64 }{}
		if err := n.Decode(&r); err != nil {
			return errors.New("latency_ms must be a number of milliseconds, or a map with min and max")
		}
		l.Min, l.Max = r.Min, max(r.Min, r.Max)
	}
	if !(l.Min >= 0 && l.Max <= float64(math.MaxInt32)) {
		return errors.New("latency_ms must be between 0 and 2147483647")
	}
	return nil
}

// JSONSchema describes a number or a map.
func (Latency) JSONSchema() *jsonschema.Schema {
	number := func(meaning string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "number", Minimum: "0", Description: meaning}
	}
	props := jsonschema.NewProperties()
	props.Set("min", number("Minimum in milliseconds."))
	props.Set("max", number("Maximum in milliseconds; min if min is greater."))
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{number(""), {
		Type: "object", Properties: props, AdditionalProperties: jsonschema.FalseSchema,
	}}}
}

func (l Latency) draw(r *rand.Rand) time.Duration {
	ms := l.Min
	if l.Max > l.Min {
		ms += r.Float64() * (l.Max - l.Min)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func check(c *eval.Check, o *Options) {
	if o.Mock == nil {
		return
	}
	for i, r := range o.Mock.Replies {
		at := func(elems ...any) decode.Path { return append(decode.At("mock", "replies", i), elems...) }
		c.Regexp(at("match"), r.Match)
		for j, n := range r.Trials {
			if n < 1 {
				c.Errorf(at("trials", j), decode.CodeInvalidValue, "trial numbers start at 1")
			}
		}
		for j, f := range r.Files {
			if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
				c.Errorf(at("files", j, "path"), decode.CodeEscapingPath, "file %q must be inside the workspace", f.Path)
			}
		}
	}
}
