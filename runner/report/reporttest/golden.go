package reporttest

import (
	"bytes"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Files returns what a format of several files writes for a run, by name.
func Files(
	t *testing.T, write func(create func(string, func(io.Writer) error) error, h record.Handle) error, h record.Handle,
) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, write(func(name string, content func(io.Writer) error) error {
		require.True(t, filepath.IsLocal(name), name)
		require.NotContains(t, all, name)
		var b bytes.Buffer
		err := content(&b)
		all[name] = b.String()
		return err
	}, h))
	return all
}

// Joined returns the contents of files in the order of their names, each after its name.
func Joined(all map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString("-- " + name + " --\n" + strings.TrimSuffix(all[name], "\n") + "\n")
	}
	return b.String()
}
