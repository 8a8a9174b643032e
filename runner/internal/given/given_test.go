package given_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/internal/given"
)

// answer is what a program says.
type answer struct {
	Score  given.Score `json:"score"`
	Passed given.Bool  `json:"passed"`
}

func TestGiven(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]answer{
		`{}`:              {},
		`{"score": 0}`:    {Score: given.Score{Given: true}},
		`{"score": 1.0}`:  {Score: given.Score{Given: true, Value: 1}},
		`{"score": 1e-3}`: {Score: given.Score{Given: true, Value: 0.001}},
		`{"score": 0.25, "passed": false}`: {
			Score: given.Score{Given: true, Value: 0.25}, Passed: given.Bool{Given: true},
		},
		`{"passed": true}`: {Passed: given.Bool{Given: true, Value: true}},
	} {
		var got answer
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		require.Equal(t, want, got, text)
	}
	var minus answer
	require.NoError(t, json.Unmarshal([]byte(`{"score": -0.0}`), &minus))
	require.False(t, math.Signbit(minus.Score.Value))

	for text, want := range map[string]string{
		`{"score": "0.1"}`:                  `score: "0.1", expected a number from 0 to 1`,
		`{"score": null}`:                   `score: null, expected a number`,
		`{"score": true}`:                   `score: true, expected a number`,
		`{"score": [1]}`:                    `score: [1], expected a number`,
		`{"score": 1e999}`:                  `score: 1e999, expected a number`,
		`{"score": -1e-9}`:                  `score: -1e-9, expected a number`,
		`{"score": 1.01}`:                   `score: 1.01, expected a number`,
		`{"score": 0, "score": 1}`:          `score: it is given twice`,
		`{"score": 0, "Score": 1}`:          `score: it is given twice`,
		`{"passed": "false"}`:               `verdict: "false", expected true or false`,
		`{"passed": 1}`:                     `verdict: 1, expected true or false`,
		`{"passed": null}`:                  `verdict: null, expected true or false`,
		`{"passed": false, "passed": true}`: `verdict: it is given twice`,
	} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), new(answer)), want, text)
	}
}

// A decoded score is a number from 0 to 1 for every text.
func FuzzGiven(f *testing.F) {
	for _, text := range []string{
		`{"score": 1}`, `{"score": 1e999}`, `{"score": -0}`, `{"score": NaN}`, `{"score": "1", "passed": "true"}`,
		`{"score": 1, "SCORE": 2}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got answer
		if json.Unmarshal([]byte(text), &got) == nil {
			require.NoError(t, given.Check(got.Score.Value))
			require.False(t, math.Signbit(got.Score.Value))
		}
	})
}
