package reporttest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares a text with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Written returns what a format writes for a run.
func Written(t *testing.T, write func(io.Writer, record.Handle) error, h record.Handle) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b, h))
	return b.String()
}
