package acp

import (
	"regexp"
	"slices"
	"strings"
)

var secretName = regexp.MustCompile(`(?i)key|token|secret|passw|credential`)

// minSecret keeps short values, such as "true" or "1", from being taken for secrets.
const minSecret = 8

// secrets puts a mark in place of the values that variables with telling names
// have in the agent's environment. Messages and errors can quote them.
func secrets(env []string) *strings.Replacer {
	var values []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if secretName.MatchString(name) && len(value) >= minSecret && !strings.ContainsAny(value, "/ \n") {
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range slices.Compact(values) {
		pairs = append(pairs, v, "[redacted]")
	}
	return strings.NewReplacer(pairs...)
}
