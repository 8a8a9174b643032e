package promptfoo

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rendering ends for any template, and a text without braces is unchanged.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		`{{ a | default("x", true) | upper }}`, `{{ l[0].k }}{# c #}{% raw %}{{ }}{% endraw %}`, `{{- 'a\'' -}}`, `{"k": "{{a}}", "l": [1, "\u00e9"]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &renderer{budget: &budget{maxExpanded}, vars: map[string]any{"a": "A", "l": []any{map[string]any{"k": 1}}}, unknown: func(string) {}}
		_, _ = r.render(s)
		if json.Valid([]byte(s)) {
			out, err := renderJSON(s, func(s string) (string, error) { return s, nil })
			require.NoError(t, err)
			require.JSONEq(t, s, out)
		}
	})
}
