package eval

import (
	"maps"
	"reflect"
	"strings"

	"waza/eval/decode"

	"gopkg.in/yaml.v3"
)

// SetDefaults fills in what config means when it says nothing.
func (c *Config) SetDefaults() {
	*c = Config{TrialsPerTask: 1, TimeoutSeconds: 300, Workers: 4, MaxAttempts: 1, RetryErrors: 1,
		Executor: "mock", InjectSkillBody: true, GradeExpected: GradeExpectedAuto}
}

// SetDefaults makes the metric one that is measured.
func (m *Metric) SetDefaults() { m.Weight, m.Enabled = 1, true }

// SetDefaults lets exit code 0 alone count as success.
func (h *Hook) SetDefaults() { h.ExitCodes = []int{0} }

// SetDefaults enables the task.
func (t *Task) SetDefaults() { t.Enabled = true }

// SetDefaults asks for one call.
func (c *ExpectedToolCall) SetDefaults() { c.Count = 1 }

// DecodeShape takes a list of metrics, or a map from name to metric in which a
// number stands for a metric's threshold and pass_threshold for the suite's.
func (m *Metrics) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		d.Value(n, reflect.ValueOf(&m.List).Elem())
		return
	}
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a list of metrics or a map from name to metric")
		return
	}
	for _, p := range d.Pairs(n) {
		d.Push(p.Key.Value)
		if p.Key.Value == "pass_threshold" {
			m.passThreshold(d, p.Value)
		} else {
			m.List = append(m.List, namedMetric(d, p))
		}
		d.Pop()
	}
}

func (m *Metrics) passThreshold(d *decode.Decoder, n *yaml.Node) {
	d.Into(n, &m.PassThreshold)
	if t := m.PassThreshold; t != nil && (*t < 0 || *t > 1) {
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s must be between 0 and 1, not %s", d.Here(), decode.Describe(decode.Follow(n)))
	}
}

func namedMetric(d *decode.Decoder, p decode.Pair) Metric {
	m := Metric{Name: p.Key.Value}
	m.SetDefaults()
	value := decode.Follow(p.Value)
	if value != nil && value.Kind == yaml.ScalarNode && !decode.IsNull(value) {
		d.Into(value, &m.Threshold)
		if m.Threshold < 0 || m.Threshold > 1 {
			d.Report(value, decode.Error, decode.CodeInvalidValue, "", "%s must be between 0 and 1, not %s", d.Here(), decode.Describe(value))
		}
		return m
	}
	// The name is required only in a list, so it is put where the list has it.
	if value != nil && value.Kind == yaml.MappingNode && decode.Lookup(value, "name") == nil {
		named := *value
		named.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: "name"}, p.Key}, value.Content...)
		value = &named
	}
	d.Into(value, &m)
	return m
}

// DecodeShape takes a command, or a map.
func (h *Hook) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		h.Command = n.Value
		return
	}
	d.Structure(n, reflect.ValueOf(h).Elem(), nil)
}

// DecodeShape takes a path, or a map with path and content.
func (f *InputFile) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		f.Path = n.Value
		return
	}
	d.Structure(n, reflect.ValueOf(f).Elem(), nil)
}

// DecodeShape takes a prompt, or a map.
func (t *TriggerPrompt) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		t.Prompt = n.Value
		if strings.TrimSpace(t.Prompt) == "" {
			d.Report(n, decode.Error, decode.CodeMissingPrompt, "", "%s is no prompt", d.Here())
		}
		return
	}
	d.Structure(n, reflect.ValueOf(t).Elem(), nil)
}

// DecodeShape takes true, false, a confidence, or a map.
func (s *Stopping) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if b, ok := decode.BoolOf(n); ok && n.Kind == yaml.ScalarNode {
		if b {
			s.Confidence = DefaultStopping
		}
		return
	}
	s.Confidence = DefaultStopping
	if n.Kind == yaml.MappingNode {
		d.Structure(n, reflect.ValueOf(s).Elem(), nil)
		return
	}
	f, ok := decode.FloatOf(n)
	switch {
	case n.Kind != yaml.ScalarNode || !ok:
		d.WrongType(n, "true, false, a confidence or a map")
	case f < 0.5 || f > 1:
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s must be between 0.5 and 1, not %s", d.Here(), decode.Describe(n))
	default:
		s.Confidence = f
	}
}

// DecodeShape takes true, false or auto.
func (g *GradeExpected) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if b, ok := decode.BoolOf(n); ok && n.Kind == yaml.ScalarNode {
		*g = GradeExpectedFalse
		if b {
			*g = GradeExpectedTrue
		}
		return
	}
	if n.Kind == yaml.ScalarNode && n.Value == string(GradeExpectedAuto) {
		*g = GradeExpectedAuto
		return
	}
	d.WrongType(n, "true, false or auto")
}

// DecodeShape takes the grader's own keys and keeps the rest for when the
// grader's kind is known.
func (g *Grader) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map")
		return // without its node it is no grader
	}
	g.src, g.node = d.Source, n
	g.File, g.Line, g.Column = d.Source.Path, n.Line, n.Column
	d.Structure(n, reflect.ValueOf(g).Elem(), func(p decode.Pair) bool {
		if p.Key.Value == "config" {
			g.config = p.Value
		} else {
			g.flat = append(g.flat, p)
		}
		return true
	})
}

// withoutEffect holds keys of other generations and tools of the format that
// are understood and do nothing here. They get a sentence instead of a guess at
// a typing error. Older names of keys that do have an effect are `alias` tags of
// their fields.
var withoutEffect = map[reflect.Type]map[string]string{
	reflect.TypeFor[Suite](): {
		"mcp_mocks":     "mocked MCP servers are not supported",
		"command_mocks": "mocked commands are not supported",
		"adversarial":   "fault injection is not supported",
		"scenario":      "suites are known by their name and skill",
		"checkpoints":   "graders run once, at the end of a trial",
	},
	reflect.TypeFor[Config](): {
		"reasoning_effort":       "executors take it among their own parameters",
		"judge_reasoning_effort": "judges take it among their own parameters",
		"trigger_skill_routing":  "prompts are sent as they are written",
	},
	reflect.TypeFor[Task](): {
		"golden":                      "every task counts the same",
		"first_event_timeout_seconds": "it is set for the whole suite, in config",
		"instruction_files":           "they are set for the whole suite, in config",
		"checkpoints":                 "graders run once, at the end of a trial",
		"responder":                   "write the further prompts in follow_up_prompts",
	},
	reflect.TypeFor[ExpectedOutcome](): {
		"value":     "an outcome is met or not",
		"condition": "an outcome is met or not",
		"tool_name": "write the tool under tool_calls",
	},
	reflect.TypeFor[Inputs](): {
		"repos":     "put the files under files",
		"workdir":   "the agent starts in the workspace",
		"responder": "write the further prompts in follow_up_prompts",
	},
}

// WithoutEffect returns the keys of a type of this package that are understood
// and do nothing, each with the reason. The caller owns the map.
func WithoutEffect(t reflect.Type) map[string]string { return maps.Clone(withoutEffect[t]) }
