// Package match holds the comparisons that several families of graders share: patterns, texts in
// any letter case, JSON Schemas and values as JSON. Call [Pattern] or [Schema] to check options,
// and again to build a grader.
package match

import (
	"regexp"
)

// Pattern compiles a pattern. If fold is set, the pattern ignores letter case.
func Pattern(pattern string, fold bool) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err // names the pattern as written
	}
	if fold {
		pattern = "(?i:" + pattern + ")"
	}
	return regexp.Compile(pattern)
}
