package agent

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Examples of patterns match them, and the invented calls meet the conditions of graders.
func TestExample(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"deploy", "^mcp__.*", "read|write", `git\s+push\b`, "[^a-z]{2}(x+)?", "a.c+", `\d{3}$`, "(?i)SELECT"} {
		require.Regexp(t, regexp.MustCompile("(?i)"+pattern), example(pattern))
	}
	require.Equal(t, "(", example("("), "no regular expression")
	require.LessOrEqual(t, len(example("((a{1000}){1000}){1000}")), 2*maxExample)
	require.Equal(t, []call{{Tool: "deploy", Arguments: map[string]any{"to": "production", "n": 3.0, "of": map[string]any{"x": "yes"}}}},
		callsIn(map[string]any{
			"ExpectTools": []any{map[string]any{"Tool": "deploy", "Args": map[string]any{
				"to": map[string]any{"Equals": "production"}, "n": map[string]any{"Range": map[string]any{"GT": 2.0, "LTE": nil}},
				"of.x": map[string]any{"Regex": "^yes$"},
			}}},
			"RejectTools": []any{map[string]any{"Tool": "rm"}}, "AllowOnly": []any{"read"},
		}, false))
	require.Equal(t, []call{{Tool: "bash", Arguments: map[string]any{"command": "git push"}}},
		callsIn(map[string]any{"Tool": "", "CommandPattern": "git push"}, true))
}
