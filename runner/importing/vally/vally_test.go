package vally_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/importing/internal/sourcetest"
	"waza/runner/importing/vally"
)

func TestOutlines(t *testing.T) {
	t.Parallel()
	sourcetest.Outlines(t, vally.Format, "testdata/*.jsonl")
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	good := `{"type":"trial-result","stimulus":"a"}` + "\n"
	for text, want := range map[string]string{
		good + `{"type":"trial-result"}`: `:2: stimulus and itemId are missing`,
		good + "\n{\"type\":":            `:3: the file ends in the middle of the document`,
		good + `{"type":7}`:              `:2: type is a JSON number: expected a text`,
		`{"type":"run-summary"}`:         `: the file has no trial-result`,
	} {
		path := filepath.Join(t.TempDir(), "results.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := vally.Format.Open(path)
		require.ErrorContains(t, err, path+want)
	}
}

// Variants are tasks of their own. Trials without the skills are left out.
func TestVariants(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.jsonl")
	text := `{"type":"trial-result","stimulus":"a","variant":"baseline","gradeResult":{"passed":false}}` + "\n"
	for _, v := range []string{"x", "y"} {
		text += `{"type":"trial-result","stimulus":"a","variant":"` + v + `","gradeResult":{"passed":true}}` + "\n"
	}
	require.NoError(t, os.WriteFile(path, []byte(text+`{"type":"run-summary","passed":false}`), 0o600))
	res, err := vally.Format.Open(path)
	require.NoError(t, err)
	var ids []string
	for _, ref := range res.Run.Tasks {
		ids = append(ids, ref.ID)
	}
	require.Equal(t, []string{"a [x]", "a [y]"}, ids)
	require.Equal(t, []string{
		"trials of the variant baseline are omitted: 1",
		"the run-summary says that the run failed, although all its trials passed",
	}, res.Notes)
}

func FuzzOpen(f *testing.F) { sourcetest.Fuzz(f, vally.Format, "testdata/results.jsonl") }
