package eval

import (
	"maps"
	"math"
	"slices"

	"waza/eval/decode"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// The metrics that are not the mean score of the graders with their name.
const (
	metricTaskCompletion  = "task_completion"
	metricTriggerAccuracy = "trigger_accuracy"
	metricComposite       = "composite"
	metricBehaviorQuality = "behavior_quality" // the mean score of graders of the type behavior
)

// metricCheck checks the metrics of a suite: their list, and once the tasks are loaded, whether
// something measures them.
type metricCheck struct{ *loader }

// checkList looks for faults in the list of metrics, and replaces weights that mean a default.
func (l metricCheck) checkList() {
	list := l.suite.Metrics.List
	for i := range list {
		l.checkWeight(i)
	}
	seen := map[string]bool{}
	for i, m := range list {
		if seen[m.Name] && m.Name != "" {
			l.reportAt(decode.Warning, decode.CodeNoEffect, []any{"metrics", i, "name"}, "duplicate metric %q; the first one counts", m.Name)
		}
		seen[m.Name] = true
	}
}

func (l metricCheck) checkWeight(i int) {
	m := &l.suite.Metrics.List[i]
	if m.Weight <= 0 || math.IsNaN(m.Weight) {
		l.reportAt(decode.Warning, decode.CodeNoEffect, l.metricPath(i, "weight"),
			"metric %q: weight %v counts as 1, because it is not positive; use `enabled: false` to leave the metric out",
			m.Name, m.Weight)
		m.Weight = 1
	}
}

// metricPath returns the path of a key of the i-th metric, in both shapes of metrics.
func (l metricCheck) metricPath(i int, key string) decode.Path {
	if n := decode.Follow(decode.Lookup(l.src.Root, "metrics")); n != nil && n.Kind == yaml.MappingNode {
		return decode.At("metrics", l.suite.Metrics.List[i].Name, key)
	}
	return decode.At("metrics", i, key)
}

// checkThresholds reports thresholds of metrics that nothing in the suite measures. Such a metric
// neither passes nor fails, so its threshold never fails a run.
func (l metricCheck) checkThresholds() {
	if l.Errors() > 0 {
		return // the faulty parts may be what measures them
	}
	measured := l.suite.measuredBy()
	for i, m := range l.suite.Metrics.List {
		if !m.Enabled || m.Threshold <= 0 || m.Name == "" || measured[m.Name] {
			continue
		}
		why := "no task of the suite has a grader of this name or type"
		switch m.Name {
		case metricTriggerAccuracy:
			why = "the suite has no trigger tests (" + triggerTestsNames[0] + ")"
		case metricTaskCompletion, metricComposite:
			why = "the suite has no tasks"
		case metricBehaviorQuality:
			why = "no task of the suite has a grader of type behavior"
		}
		name := l.metricName(i)
		d := l.src.Diagnostic(name, decode.Warning, decode.CodeUnmeasuredMetric, "")
		d.Suggestion = decode.Nearest(m.Name, slices.Sorted(maps.Keys(measured)))
		d.Message = "metric \"" + text.Clip(m.Name, 60) + "\" cannot be measured, so its threshold has no effect: " + why
		l.Report(d)
	}
}

// metricName returns the node with the name of the i-th metric, in both shapes of metrics.
func (l metricCheck) metricName(i int) *yaml.Node {
	metrics := decode.Follow(decode.Lookup(l.src.Root, "metrics"))
	if metrics != nil && metrics.Kind == yaml.MappingNode {
		key, _ := decode.LookupPair(metrics, l.suite.Metrics.List[i].Name)
		return key
	}
	return decode.Place(l.src.Root, "metrics", i, "name")
}

// measuredBy returns the names of the metrics that the suite can measure.
func (s *Suite) measuredBy() map[string]bool {
	all := map[string]bool{}
	if len(s.Tasks) > 0 {
		all[metricTaskCompletion] = true
	}
	if s.Triggers != nil && s.Triggers.Prompts() > 0 {
		all[metricTriggerAccuracy] = true
	}
	for _, t := range s.Tasks {
		for _, g := range slices.Concat(s.Graders, t.Graders) {
			all[g.Name], all[g.Type] = true, true
		}
		for _, name := range t.Expected.graders() {
			all[name] = true
		}
	}
	delete(all, "")
	if all["behavior"] {
		all[metricBehaviorQuality] = true
	}
	if len(all) > 0 {
		all[metricComposite] = true
	}
	return all
}

// graders returns the names and types of the graders that check expectations.
func (e *Expected) graders() []string {
	if e == nil {
		return nil
	}
	var all []string
	for _, x := range []struct {
		given      bool
		name, kind string
	}{
		{len(e.OutputContains) > 0, "_output_contains", "text"},
		{len(e.OutputNotContains) > 0, "_output_not_contains", "text"},
		{len(e.OutputContainsAny) > 0, "_output_contains_any", "text"},
		{len(e.Matches) > 0, "_matches", "text"},
		{e.Behavior != nil, "_behavior", "behavior"},
		{e.ToolCalls != nil, "_tool_calls", "tool_calls"},
		{e.ShouldTrigger != nil, "_should_trigger", "skill_invocation"},
		{e.Recipients != nil, "_recipients", "skill_invocation"},
		{len(e.Outcomes) > 0, "_outcomes", "outcomes"},
	} {
		if x.given {
			all = append(all, x.name, x.kind)
		}
	}
	return all
}
