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

func FuzzOpen(f *testing.F) { sourcetest.Fuzz(f, vally.Format, "testdata/results.jsonl") }
