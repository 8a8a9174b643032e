package promptfoo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/importing/internal/sourcetest"
	"waza/runner/importing/promptfoo"
)

func TestOutlines(t *testing.T) {
	t.Parallel()
	sourcetest.Outlines(t, promptfoo.Format, "testdata/*.json")
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"evalId":"e","results":{"results":[]}}`:                               `: results.results: the file has no results`,
		`{"evalId":"e","results":[]}`:                                           `: results.results: the file has no results`,
		`{"evalId":7,"results":{"results":[{}]}}`:                               `:1: it is a JSON number: expected a text`,
		"{\"evalId\":\"e\",\"results\":{\"results\":[{},\n{\"provider\":[]}]}}": `:2: results.results[1]: `,
	} {
		path := filepath.Join(t.TempDir(), "results.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := promptfoo.Format.Open(path)
		require.ErrorContains(t, err, path+want)
	}
}

// Tests can differ only in what they expect.
func TestTestsThatExpectOtherThings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"evalId":"e","results":{"timestamp":"2026-01-01T00:00:00Z","results":[`+
		`{"testCase":{"assert":[{"type":"equals","value":"a"}]},"success":true,"score":1},`+
		`{"testCase":{"assert":[{"type":"equals","value":"a"}],"threshold":0.5},"success":true,"score":1},`+
		`{"testCase":{"assert":[{"type":"equals","value":"b"}]},"success":false,"score":0}]}}`), 0o600))
	res, err := promptfoo.Format.Open(path)
	require.NoError(t, err)
	require.Len(t, res.Run.Tasks, 3)
}

func FuzzOpen(f *testing.F) {
	sourcetest.Fuzz(f, promptfoo.Format, "testdata/results.json", "testdata/providers.json")
}
