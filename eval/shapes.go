package eval

import (
	"maps"
	"reflect"
	"strings"

	"waza/eval/decode"

	"gopkg.in/yaml.v3"
)

// SetDefaults sets the defaults of config.
func (c *Config) SetDefaults() {
	*c = Config{TrialsPerTask: 1, TimeoutSeconds: 300, Workers: 4, MaxAttempts: 1, RetryErrors: 1,
		Executor: "mock", InjectSkillBody: true, GradeExpected: GradeExpectedAuto}
	c.Sandbox.SetDefaults()
}

// SetDefaults sets weight 1 and enables the metric.
func (m *Metric) SetDefaults() { m.Weight, m.Enabled = 1, true }

// SetDefaults enables the task.
func (t *Task) SetDefaults() { t.Enabled = true }

// SetDefaults sets a count of one call.
func (c *ExpectedToolCall) SetDefaults() { c.Count = 1 }

// DecodeShape decodes a list of metrics, or a map from name to metric. In a map, a number is the
// metric's threshold and pass_threshold is the suite's.
func (m *Metrics) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		d.Into(n, &m.List)
		return
	}
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a list of metrics or a map from name to metric")
		return
	}
	for _, p := range d.Pairs(n) {
		d.Push(p.Key.Value)
		if p.Key.Value == "pass_threshold" {
			if d.Into(p.Value, &m.PassThreshold); m.PassThreshold != nil {
				checkShare(d, p.Value, *m.PassThreshold)
			}
		} else {
			m.List = append(m.List, namedMetric(d, p))
		}
		d.Pop()
	}
}

func checkShare(d *decode.Decoder, n *yaml.Node, share float64) {
	if share < 0 || share > 1 {
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s must be between 0 and 1, got %s", d.Here(), decode.Describe(decode.Follow(n)))
	}
}

func namedMetric(d *decode.Decoder, p decode.Pair) Metric {
	m := Metric{Name: p.Key.Value}
	m.SetDefaults()
	value := decode.Follow(p.Value)
	if value != nil && value.Kind == yaml.ScalarNode && !decode.IsNull(value) {
		d.Into(value, &m.Threshold)
		checkShare(d, value, m.Threshold)
		return m
	}
	// A metric of a list needs a name, so the key is inserted as its name.
	if value != nil && value.Kind == yaml.MappingNode && decode.Lookup(value, "name") == nil {
		named := *value
		named.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: "name"}, p.Key}, value.Content...)
		value = &named
	}
	d.Into(value, &m)
	return m
}

// DecodeShape decodes a path, or a map with path and content.
func (f *InputFile) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	d.TextOr(n, &f.Path, f)
}

// DecodeShape decodes a prompt, or a map.
func (t *TriggerPrompt) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if d.TextOr(n, &t.Prompt, t) && strings.TrimSpace(t.Prompt) == "" {
		d.Report(n, decode.Error, decode.CodeMissingPrompt, "", "%s is an empty prompt", d.Here())
	}
}

// DecodeShape decodes true, false, a confidence, or a map.
func (s *Stopping) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if b, ok := decode.BoolOf(n); ok && n.Kind == yaml.ScalarNode {
		if b {
			s.Confidence = defaultStopping
		}
		return
	}
	s.Confidence = defaultStopping
	if n.Kind == yaml.MappingNode {
		d.Structure(n, s, nil)
		return
	}
	f, ok := decode.FloatOf(n)
	switch {
	case n.Kind != yaml.ScalarNode || !ok:
		d.WrongType(n, "true, false, a confidence or a map")
	case f < 0.5 || f > 1:
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s must be between 0.5 and 1, got %s", d.Here(), decode.Describe(n))
	default:
		s.Confidence = f
	}
}

// DecodeShape decodes true, false or auto.
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

// DecodeShape decodes the grader's own keys. It keeps the others until the grader's kind is
// known.
func (g *Grader) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map")
		return // without its node it is not a grader
	}
	g.src, g.node = d.Source, n
	g.File, g.Line, g.Column = d.Source.Path, n.Line, n.Column
	d.Structure(n, g, func(p decode.Pair) bool {
		if p.Key.Value == "config" {
			g.config = p.Value
		} else {
			g.flat = append(g.flat, p)
		}
		return true
	})
}

// withoutEffect holds keys of other generations and tools of the format that waza accepts and
// ignores. A finding explains each of them, because a guess at a typing error would mislead.
// Older names of keys that have an effect are `alias` tags of their fields.
var withoutEffect = map[reflect.Type]map[string]string{
	reflect.TypeFor[Suite](): {
		"command_mocks": "mocked commands are not supported; put scripts with these names into a folder, and the " +
			"folder first in the PATH of inputs.environment",
		"adversarial": "fault injection is not supported; use error_rate of executor mock to make trials fail",
		"scenario":    "only tasks have tags; suites are selected by name and skill",
		"checkpoints": "checkpoints belong to tasks",
	},
	reflect.TypeFor[Config](): {
		"trigger_skill_routing": "agents choose their skills themselves; use trigger_tests.yaml to measure how well",
	},
	reflect.TypeFor[ExpectedOutcome](): {
		"condition": "an outcome is met or not; use matches or graders to check an output",
	},
}

// WithoutEffect returns the keys of a type of this package that waza accepts and ignores, each
// with the reason. The caller owns the map.
func WithoutEffect(t reflect.Type) map[string]string { return maps.Clone(withoutEffect[t]) }
