package eval

import (
	"reflect"
	"strings"

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

// decodeShape takes a list of metrics, or a map from name to metric in which a
// number stands for a metric's threshold and pass_threshold for the suite's.
func (m *Metrics) decodeShape(d *decoder, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		d.value(n, reflect.ValueOf(&m.List).Elem())
		return
	}
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, "a list of metrics or a map from name to metric")
		return
	}
	for _, p := range d.pairs(n) {
		d.push(p.key.Value)
		if p.key.Value == "pass_threshold" {
			m.passThreshold(d, p.value)
		} else {
			m.List = append(m.List, namedMetric(d, p))
		}
		d.pop()
	}
}

func (m *Metrics) passThreshold(d *decoder, n *yaml.Node) {
	d.into(n, &m.PassThreshold)
	if t := m.PassThreshold; t != nil && (*t < 0 || *t > 1) {
		d.report(n, Error, CodeInvalidValue, "", "%s must be between 0 and 1, not %s", d.here(), describe(follow(n)))
	}
}

func namedMetric(d *decoder, p pair) Metric {
	m := Metric{Name: p.key.Value}
	m.SetDefaults()
	value := follow(p.value)
	if value != nil && value.Kind == yaml.ScalarNode && !isNull(value) {
		d.into(value, &m.Threshold)
		if m.Threshold < 0 || m.Threshold > 1 {
			d.report(value, Error, CodeInvalidValue, "", "%s must be between 0 and 1, not %s", d.here(), describe(value))
		}
		return m
	}
	// The name is required only in a list, so it is put where the list has it.
	if value != nil && value.Kind == yaml.MappingNode && lookup(value, "name") == nil {
		named := *value
		named.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: "name"}, p.key}, value.Content...)
		value = &named
	}
	d.into(value, &m)
	return m
}

// decodeShape takes a command, or a map.
func (h *Hook) decodeShape(d *decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		h.Command = n.Value
		return
	}
	d.structure(n, reflect.ValueOf(h).Elem(), nil)
}

// decodeShape takes a path, or a map with path and content.
func (f *InputFile) decodeShape(d *decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		f.Path = n.Value
		return
	}
	d.structure(n, reflect.ValueOf(f).Elem(), nil)
}

// decodeShape takes a prompt, or a map.
func (t *TriggerPrompt) decodeShape(d *decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		t.Prompt = n.Value
		if strings.TrimSpace(t.Prompt) == "" {
			d.report(n, Error, CodeMissingPrompt, "", "%s is no prompt", d.here())
		}
		return
	}
	d.structure(n, reflect.ValueOf(t).Elem(), nil)
}

// decodeShape takes true, false, a confidence, or a map.
func (s *Stopping) decodeShape(d *decoder, n *yaml.Node) {
	if b, ok := boolOf(n); ok && n.Kind == yaml.ScalarNode {
		if b {
			s.Confidence = DefaultStopping
		}
		return
	}
	s.Confidence = DefaultStopping
	if n.Kind == yaml.MappingNode {
		d.structure(n, reflect.ValueOf(s).Elem(), nil)
		return
	}
	f, ok := floatOf(n)
	switch {
	case n.Kind != yaml.ScalarNode || !ok:
		d.wrongType(n, "true, false, a confidence or a map")
	case f < 0.5 || f > 1:
		d.report(n, Error, CodeInvalidValue, "", "%s must be between 0.5 and 1, not %s", d.here(), describe(n))
	default:
		s.Confidence = f
	}
}

// decodeShape takes true, false or auto.
func (g *GradeExpected) decodeShape(d *decoder, n *yaml.Node) {
	if b, ok := boolOf(n); ok && n.Kind == yaml.ScalarNode {
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
	d.wrongType(n, "true, false or auto")
}

// decodeShape takes the grader's own keys and keeps the rest for when the
// grader's kind is known.
func (g *Grader) decodeShape(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, "a map")
		return // without its node it is no grader
	}
	g.src, g.node = d.src, n
	g.File, g.Line, g.Column = d.src.path, n.Line, n.Column
	d.structure(n, reflect.ValueOf(g).Elem(), func(p pair) bool {
		if p.key.Value == "config" {
			g.config = p.value
		} else {
			g.flat = append(g.flat, p)
		}
		return true
	})
}
