package promptfoo

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// checkTrajectory is a JavaScript function that decides about the steps of an agent, from an assertion with
// the keys kind, value and inverse. The reason of a failure names the expected and the actual steps.
//
//go:embed trajectory.js
var checkTrajectory string

// stepTypes are the types of steps that waza records.
var stepTypes = []string{"tool", "command", "search", "reasoning", "message"}

// trajectory returns the grader of an assertion about the steps of the agent.
func (c *caseTranslator) trajectory(a part, kind string, value any) (s spec, ok bool) {
	if err := trajectoryFault(kind, value); err != nil {
		c.block(a, "the value of %s %v", kind, err)
		return spec{}, false
	}
	inverse := strings.HasPrefix(a.get("type").text(), "not-")
	data, err := jsonwalk.Encode(map[string]any{"kind": strings.TrimPrefix(kind, "trajectory:"), "value": value, "inverse": inverse})
	body := fmt.Sprintf("return %s(%s);", strings.TrimSpace(checkTrajectory), data)
	if err == nil && len(body) > maxCode {
		err = fmt.Errorf("is longer than %d KiB", (maxCode-len(checkTrajectory))>>10)
	}
	if err != nil {
		c.block(a, "the value of %s %v", kind, err)
		return spec{}, false
	}
	s = c.function(c.place(a), body)
	s.inverse, s.needsSteps = true, true
	return s, true
}

// warnSteps warns about assertions that decide by steps if no provider of the file reports any. They end in an error. The
// case is not blocked, because an agent that replaces the providers has steps.
func (c *caseTranslator) warnSteps(kind string) {
	if c.stepless {
		providers := cmp.Or(decode.Lookup(c.root, "providers"), decode.Lookup(c.root, "targets"))
		c.warn(part{providers, c.Source}, "%s decides by the steps of an agent, and these providers report none, so that trials end in an error: "+
			"run the file with --agent NAME", kind)
	}
}

// trajectoryFault returns the fault of the value of an assertion about steps.
func trajectoryFault(kind string, value any) error {
	m, isMap := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case kind == "trajectory:step-count":
		if !isMap || m["min"] == nil && m["max"] == nil {
			return fmt.Errorf("must be a map with min or max")
		}
		return matcherFault(m, false)
	case kind == "trajectory:tool-args-match":
		if !isMap || m["args"] == nil && m["arguments"] == nil {
			return fmt.Errorf("must be a map with name or pattern, and args")
		}
		return argsFault(m)
	case kind == "trajectory:tool-sequence" && isMap:
		if mode := textOf(m["mode"]); !slices.Contains([]string{"", "exact", "in_order"}, mode) {
			return fmt.Errorf("must have the mode exact or in_order, got %q", text.Clip(mode, 40))
		}
		list, isList = m["steps"].([]any)
	case isMap:
		return matcherFault(m, true)
	case !isList:
		list, isList = []any{value}, kind == "trajectory:tool-used"
	}
	if !isList || len(list) == 0 {
		return fmt.Errorf("must name tools")
	}
	for _, item := range list {
		step, isMap := item.(map[string]any)
		switch s, isText := item.(string); {
		case isMap && kind == "trajectory:tool-sequence":
			if err := matcherFault(step, true); err != nil {
				return err
			}
		case !isText || s == "":
			return fmt.Errorf("must name tools")
		}
	}
	return nil
}

// matcherFault returns the fault of a map that selects steps.
func matcherFault(m map[string]any, named bool) error {
	if named && textOf(m["name"])+textOf(m["pattern"]) == "" {
		return fmt.Errorf("must have a name or a pattern")
	}
	for _, key := range []string{"name", "pattern"} {
		if _, isText := m[key].(string); m[key] != nil && !isText {
			return fmt.Errorf("must have a text as %s", key)
		}
	}
	for _, key := range []string{"min", "max"} {
		_, isWhole := m[key].(int)
		if _, isFloat := m[key].(float64); m[key] != nil && !isWhole && !isFloat {
			return fmt.Errorf("must have a number as %s", key)
		}
	}
	for _, kind := range textsOf(m["type"], false) {
		if m["type"] != nil && !slices.Contains(stepTypes, kind) {
			return fmt.Errorf("has the type %q, and waza records only %s", text.Clip(kind, 40), strings.Join(stepTypes, ", "))
		}
	}
	return nil
}

// argsFault returns the fault of a map that selects calls by their arguments.
func argsFault(m map[string]any) error {
	if mode := textOf(m["mode"]); !slices.Contains([]string{"", "exact", "partial"}, mode) {
		return fmt.Errorf("must have the mode exact or partial, got %q", text.Clip(mode, 40))
	}
	if _, isMap := m["defaults"].(map[string]any); m["defaults"] != nil && !isMap {
		return fmt.Errorf("must have a map as defaults")
	}
	if m["ignore"] != nil && slices.ContainsFunc(textsOf(m["ignore"], false), func(s string) bool { return strings.TrimSpace(s) == "" }) {
		return fmt.Errorf("must have names of arguments as ignore")
	}
	return matcherFault(m, true)
}
