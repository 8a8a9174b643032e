package doortest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// Names maps the placeholders $NAME of a dialogue to the first values they matched.
type Names map[string]any

// Compare compares JSON with the expected JSON. The strings $time, $text, $ms and $took match
// any time, any text, any positive number and any non-negative number. at is the position in the
// dialogue.
func (n Names) Compare(t *testing.T, at, want string, data []byte) {
	t.Helper()
	var wanted, got any
	require.NoError(t, json.Unmarshal([]byte(want), &wanted), at)
	require.NoError(t, json.Unmarshal(data, &got), "%s: %s", at, data)
	require.Empty(t, cmp.Diff(n.settle(wanted, got), got), "%s\n%s", at, data)
}

// settle replaces the placeholders in want that match the values in got.
func (n Names) settle(want, got any) any {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for field, value := range w {
			w[field] = n.settle(value, g[field])
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			w[i] = n.settle(w[i], g[i])
		}
	case string:
		return n.settleText(w, got)
	}
	return want
}

func (n Names) settleText(w string, got any) any {
	text, isText := got.(string)
	number, isNumber := got.(float64)
	switch {
	case w == "$time":
		if _, err := time.Parse(time.RFC3339, text); err == nil {
			return got
		}
	case w == "$text" && isText && text != "", w == "$ms" && isNumber && number > 0, w == "$took" && isNumber && number >= 0:
		return got
	case strings.HasPrefix(w, "$"):
		if _, ok := n[w]; !ok && got != nil {
			n[w] = got
		}
		return n[w]
	}
	return w
}
