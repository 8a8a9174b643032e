package program

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader/internal/gradertest"
)

// An output that is one JSON text is available as a value in both languages.
func TestOutputJSON(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 501) + strings.Repeat("]", 501)
	for output, want := range map[string]struct{ python, javaScript string }{
		`{"title": "x", "list": [1, 2.5, true, null], "id": 9007199254740993}`: {
			"output_json['title'] == 'x' and output_json.list == [1, 2.5, True, None] and output_json['id'] == 9007199254740993",
			"output_json.title === 'x' && output_json.list[1] === 2.5 && output_json.list[3] === null",
		},
		"```json\n{\"a\": 1}\n```": {"output_json['a'] == 1", "output_json.a === 1"},
		`0`:                        {"output_json == 0 and output_json is not None", "output_json === 0"},
		`"text"`:                   {"output_json == 'text'", "output_json === 'text'"},
		`null`:                     {"output_json is None", "output_json === null"},
		"":                         {"output_json is None", "output_json === null"},
		"plain text":               {"output_json is None", "output_json === null"},
		`{"a": 1} and more`:        {"output_json is None", "output_json === null"},
		`{"a": NaN}`:               {"output_json is None", "output_json === null"},
		deep:                       {"output_json is None", "output_json === null"},
		deep[1:1001]:               {"len(output_json) == 1", "output_json.length === 1"},
	} {
		s := gradertest.Subject(output)
		b, _ := javaScript(t, want.javaScript)
		gradertest.RequireVerdict(t, b, s, gradertest.Passes())
		b, _ = assertions(t, want.python)
		gradertest.RequireVerdict(t, b, s, gradertest.Passes())
	}
	require.Equal(t, []string{"output_json"}, mentioned([]string{"output_json == 1"}))
}
