// Package match holds the comparisons that several families of graders share: patterns, texts in any case, JSON Schemas and values as JSON.
// Call [Pattern] or [Schema] when options are checked, and again when a grader is built.
package match

import (
	"regexp"
)

// Pattern compiles a pattern, for any letter case when fold is set.
func Pattern(pattern string, fold bool) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err // names the pattern as it was written
	}
	if fold {
		pattern = "(?i:" + pattern + ")"
	}
	return regexp.Compile(pattern)
}
