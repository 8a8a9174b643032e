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

// Options are the keys of a suite's config that belong to the mock executor.
type Options struct {
	// What the mock says and does; without it, every reply is "Mock response for: <prompt>".
	Mock *Script `yaml:"mock"`
}

// Script is a part that the mock plays.
type Script struct {
	// Milliseconds before each reply: a number, or {min, max} to draw from.
	LatencyMS Latency `yaml:"latency_ms"`
	// Seed of all that is drawn; the same seed gives the same run.
	Seed uint64 `yaml:"seed"`
	// Share of trials, 0 to 1, that end as error.
	ErrorRate float64 `yaml:"error_rate" jsonschema:"minimum=0,maximum=1"`
	// Replies, of which the first that matches is given.
	Replies []Reply `yaml:"replies"`
}

// Reply is what the mock says and does when a prompt matches.
type Reply struct {
	// Regular expression (RE2) on the prompt; absent matches every prompt.
	Match string `yaml:"match"`
	// Numbers of the trials the reply is for; all when absent.
	Trials []int `yaml:"trials"`
	// What the mock answers. May use template variables.
	Output string `yaml:"output"`
	// Tool calls to record.
	ToolCalls []ToolCall `yaml:"tool_calls"`
	// Files to write into the workspace.
	Files []File `yaml:"files"`
	// Tokens to report.
	Usage *Usage `yaml:"usage"`
	// Skills to report as used.
	Skills []string `yaml:"skills"`
	// Ends the trial as error, with this text.
	Error string `yaml:"error"`
}

// ToolCall is a tool call to record.
type ToolCall struct {
	// Name of the tool.
	Name string `yaml:"name" jsonschema:"required"`
	// Arguments of the call.
	Arguments map[string]any `yaml:"arguments"`
	// What the tool answered.
	Result any `yaml:"result"`
}

// File is a file to write.
type File struct {
	// Path in the workspace.
	Path string `yaml:"path" jsonschema:"required"`
	// Text of the file. May use template variables.
	Content string `yaml:"content"`
}

// Usage are tokens to report.
type Usage struct {
	// Tokens read.
	InputTokens int64 `yaml:"input_tokens" jsonschema:"minimum=0"`
	// Tokens written.
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

// UnmarshalYAML takes both shapes.
func (l *Latency) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if err := n.Decode(&l.Min); err != nil {
			return errors.New("latency_ms: a number of milliseconds or a map of min and max is wanted")
		}
		l.Max = l.Min
	} else {
		r := struct{ Min, Max float64 }{}
		if err := n.Decode(&r); err != nil {
			return errors.New("latency_ms: a number of milliseconds or a map of min and max is wanted")
		}
		l.Min, l.Max = r.Min, max(r.Min, r.Max)
	}
	if !(l.Min >= 0 && l.Max <= float64(math.MaxInt32)) {
		return errors.New("latency_ms: must not be negative")
	}
	return nil
}

// JSONSchema describes both shapes.
func (Latency) JSONSchema() *jsonschema.Schema {
	number := func(meaning string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "number", Minimum: "0", Description: meaning}
	}
	props := jsonschema.NewProperties()
	props.Set("min", number("Least number of milliseconds."))
	props.Set("max", number("Most milliseconds; min when that is more."))
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
				c.Errorf(at("trials", j), decode.CodeInvalidValue, "trials are counted from 1")
			}
		}
		for j, f := range r.Files {
			if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
				c.Errorf(at("files", j, "path"), decode.CodeEscapingPath, "file %q is not inside the workspace", f.Path)
			}
		}
	}
}
