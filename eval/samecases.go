package eval

import (
	"path/filepath"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
)

// SameCases finds suites that have the same prompts in different formats, such as an evals.json and the
// eval.yaml that was converted from it. They are in one directory or about one skill. The result has the
// path of each suite that only repeats another one, and the path of that: the eval.yaml, or the first.
func SameCases(found []discover.Summary, v files.View) map[string]string {
	prompts := map[string]string{}
	promptsOf := func(path string) string {
		text, known := prompts[path]
		if !known {
			text = allPrompts(path, v)
			prompts[path] = text
		}
		return text
	}
	ordered := slices.Clone(found)
	slices.SortStableFunc(ordered, func(a, b discover.Summary) int { return rank(a.Format) - rank(b.Format) })
	same := map[string]string{}
	for i, s := range ordered {
		for _, first := range ordered[:i] {
			if first.Format == s.Format || same[first.Path] != "" || !mayRepeat(first, s) {
				continue
			}
			if text := promptsOf(s.Path); text != "" && text == promptsOf(first.Path) {
				same[s.Path] = first.Path
				break
			}
		}
	}
	return same
}

// rank returns 0 for an eval.yaml, and 1 for the formats of other tools.
func rank(format string) int { return min(len(format), 1) }

func mayRepeat(a, b discover.Summary) bool {
	return a.Skill != "" && a.Skill == b.Skill || filepath.Dir(a.Path) == filepath.Dir(b.Path)
}

// allPrompts returns the prompts of a suite as one text that does not depend on their order; "" if the
// suite cannot be loaded.
func allPrompts(path string, v files.View) string {
	s, _, err := Load(path, Options{View: v})
	if err != nil || s == nil {
		return ""
	}
	var list []string
	for _, t := range s.Tasks {
		list = append(list, strings.Join(append([]string{"task", t.Inputs.Prompt}, t.Inputs.FollowUpPrompts...), "\x00"))
	}
	if s.Triggers != nil {
		for _, p := range s.Triggers.ShouldTrigger {
			list = append(list, "use\x00"+p.Prompt)
		}
		for _, p := range s.Triggers.ShouldNotTrigger {
			list = append(list, "avoid\x00"+p.Prompt)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\x01")
}

// reportSameCases reports the suites that only repeat others.
func reportSameCases(found *discover.Found, v files.View) {
	same := SameCases(found.Suites, v)
	for _, s := range found.Suites {
		if first := same[s.Path]; first != "" {
			found.Problems = append(found.Problems, decode.Diagnostic{
				File: s.Path, Severity: decode.Warning, Code: decode.CodeNoEffect,
				Message: "the suite has the same prompts as " + first + ", which waza run runs in its place; name this file to run it",
			})
		}
	}
}
