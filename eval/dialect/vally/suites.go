package vally

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// suiteTag is the key of the tags for the suites of .vally.yaml that contain a stimulus.
const suiteTag = "suite"

// maxAlternatives limits the braces and commas of a glob, because the time of a match is exponential in
// them: 24 have at most about 7000 combinations.
const maxAlternatives = 24

// suitesOf returns the names of the suites of .vally.yaml that contain a stimulus with some tags.
func (s *stimulus) suitesOf(tags []tag) (names []string) {
	for _, p := range dialect.Pairs(s.project.get("suites")) {
		if s.inFiles(p.Value) && s.fits(p, tags) {
			names = append(names, p.Key.Value)
		}
	}
	return names
}

// inFiles reports whether evals of a suite of .vally.yaml contain this file. Absent evals contain all.
func (s *stimulus) inFiles(suite *yaml.Node) bool {
	n := decode.Follow(decode.Lookup(suite, "evals"))
	if n == nil || decode.IsNull(n) {
		return true
	}
	rel, err := filepath.Rel(s.project.dir, s.Source.Path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(valuesOf(n), func(glob string) bool {
		if strings.Count(glob, "{")+strings.Count(glob, ",") > maxAlternatives {
			s.warnOnce("suites.evals "+glob, nil, decode.CodeInvalidValue, "the glob %q in evals of %s has more than %d braces and commas, so it matches nothing",
				text.Clip(glob, 60), projectName, maxAlternatives)
			return false
		}
		matches, err := doublestar.Match(strings.TrimPrefix(glob, "./"), filepath.ToSlash(rel))
		if err != nil || !doublestar.ValidatePattern(glob) {
			s.warnOnce("suites.evals "+glob, nil, decode.CodeInvalidValue, "the glob %q in evals of %s is malformed, so it matches nothing",
				text.Clip(glob, 60), projectName)
			return false
		}
		return matches
	})
}

// fits reports whether tags fulfil the filter of a suite of .vally.yaml: for each key, one of its values.
func (s *stimulus) fits(suite decode.Pair, tags []tag) bool {
	filter := decode.Follow(decode.Lookup(suite.Value, "filter"))
	if filter == nil && decode.Lookup(suite.Value, "evals") == nil {
		s.warnOnce("suites."+suite.Key.Value, nil, decode.CodeInvalidValue, "the suite %q of %s has neither filter nor evals, so it is empty",
			text.Clip(suite.Key.Value, 60), projectName)
		return false
	}
	for _, p := range dialect.Pairs(filter) {
		wanted := valuesOf(p.Value)
		if !slices.ContainsFunc(tags, func(t tag) bool { return t.key == p.Key.Value && slices.Contains(wanted, t.value) }) {
			return false
		}
	}
	return true
}

// valuesOf returns a text, or the texts of a list.
func valuesOf(n *yaml.Node) (values []string) {
	if one := dialect.TextOf(n); one != "" {
		return []string{one}
	}
	for _, item := range dialect.Items(n) {
		if value := dialect.TextOf(item); value != "" {
			values = append(values, value)
		}
	}
	return values
}
