package vally

import (
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// runSettings are the settings of config, or of the newer defaults.
type runSettings struct {
	nodes   []*yaml.Node // the maps, the one with priority first
	timeout time.Duration
}

var settingKeys = []string{"runs", "timeout", "model", "judge_model", "judge_reasoning_effort", "executor"}

// unusedSettings are run settings of Vally that waza leaves to the agent.
var unusedSettings = []string{"reasoning_effort", "max_retries"}

// readSettings finds the run settings of the suite.
func (tr *translator) readSettings() runSettings {
	var s runSettings
	for _, key := range []string{"defaults", "config"} {
		n := decode.Follow(decode.Lookup(tr.root, key))
		switch {
		case n == nil || decode.IsNull(n):
		case n.Kind != yaml.MappingNode:
			tr.Reportf(tr.Source, n, decode.Error, decode.CodeWrongType, "%s must be a map, got %s", key, describe(n))
		default:
			s.nodes = append(s.nodes, n)
			for _, p := range dialect.Pairs(n) {
				if name := parameterIn(p.Value); name != "" && !tr.HeadOnly {
					tr.fault(p.Value, "%s %s", text.Clip(p.Key.Value, 60), needsParameter(name))
				}
			}
			if !tr.HeadOnly {
				tr.warnUnknown(n, append(slices.Clone(settingKeys), unusedSettings...), key)
				for _, unused := range unusedSettings {
					if v := decode.Lookup(n, unused); v != nil && !decode.IsNull(v) {
						tr.warnOnce(unused, v, decode.CodeNoEffect, "%s of %s has no effect; choose it with the agent", unused, key)
					}
				}
			}
		}
	}
	return s
}

// get returns a setting; nil if it is absent, null or a parameter without a value, which was reported.
func (s runSettings) get(key string) *yaml.Node {
	for _, n := range s.nodes {
		if v := decode.Follow(decode.Lookup(n, key)); v != nil && !decode.IsNull(v) && parameterIn(v) == "" {
			return v
		}
	}
	return nil
}

// setConfig translates the run settings.
func (tr *translator) setConfig() {
	if n := tr.settings.get("runs"); n != nil && n.Value == "0" {
		tr.warnOnce("runs: 0", n, decode.CodeOtherMeaning, "runs: 0 only checks a suite, like `waza validate`; waza runs each task once")
	} else if n != nil {
		tr.config.Set("trials_per_task", n)
	}
	if n := tr.settings.get("timeout"); n != nil {
		d, err := durationOf(n)
		if seconds, ok := decode.FloatOf(n); err != nil && ok && seconds > 0 {
			d, err = time.Duration(seconds*float64(time.Second)), nil
			tr.warnOnce("timeout", n, decode.CodeOtherMeaning, "timeout has no unit and counts as seconds; write %ss", n.Value)
		}
		if err != nil {
			tr.fault(n, "timeout %v", err)
		} else {
			tr.settings.timeout = d
			tr.config.Set("timeout_seconds", dialect.Scalar(n, d.Seconds()))
		}
	}
	for _, key := range []string{"judge_model", "judge_reasoning_effort"} {
		tr.config.Set(key, tr.settings.get(key))
	}
}

// executors are the executors of Vally that waza has, too.
var executors = []string{"copilot-sdk"}

// executorOf returns the executor of a setting if waza has it. Without one, flags and .waza.yaml decide.
func (tr *translator) executorOf(n *yaml.Node) (at *yaml.Node, id string) {
	if n == nil {
		return nil, ""
	}
	at = n
	if n.Kind == yaml.MappingNode {
		at = decode.Follow(decode.Lookup(n, "name"))
		if options := decode.Follow(decode.Lookup(n, "config")); len(dialect.Pairs(options)) > 0 {
			tr.warnOnce("executor.config", options, decode.CodeNoEffect, "the options of the executor %q have no effect", text.Clip(dialect.TextOf(at), 60))
		}
	}
	if id = dialect.TextOf(at); slices.Contains(executors, id) {
		return at, id
	}
	tr.warnOnce("executor", n, decode.CodeNoEffect, "waza does not have Vally's executor %q; choose an agent with --agent or in .waza.yaml",
		text.Clip(id, 60))
	return n, ""
}

// setHeadExecutor sets the executor for lists of suites.
func (tr *translator) setHeadExecutor() {
	if at, id := tr.executorOf(tr.settings.get("executor")); id != "" {
		tr.config.Set("executor", dialect.Scalar(at, id))
	}
}
