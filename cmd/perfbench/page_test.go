package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root     = "../.."
	document = root + "/docs/performance.md"
)

// docs/performance.md agrees with the measures and the accepted figures.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	a, err := readAccepted(filepath.Join(root, acceptedFile))
	require.NoError(t, err)
	written, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, page(a), string(written), "go run ./cmd/perfbench -run '^$' -accept -write docs/performance.md writes the page")
}

// Each figure of the guard is accepted, and each row has a name of its own.
func TestRows(t *testing.T) {
	t.Parallel()
	a, err := readAccepted(filepath.Join(root, acceptedFile))
	require.NoError(t, err)
	for _, r := range guardedRows() {
		require.Contains(t, a.Guard.Figures, r.name)
	}
	names := map[string]bool{}
	for _, m := range slices.Concat(measures(), peers()) {
		require.NotEmpty(t, m.title)
		require.NotEmpty(t, m.how)
		for _, r := range m.rows {
			require.False(t, names[r.name], r.name)
			names[r.name] = true
		}
	}
	for name := range a.Table.Rows {
		require.True(t, names[name], "accepted figure of no row: %s", name)
	}
	require.Len(t, a.Guard.Figures, len(guardedRows()))
}

func TestCells(t *testing.T) {
	t.Parallel()
	r := row{name: "trial", unit: "µs", target: target{most: 10, floors: 2.5}}
	require.Equal(t, []string{"trial", "9.5 µs", "4 µs", "2.38 ×", "≤ 10 µs, ≤ 2.5 × floor", "yes"}, r.cells(figure{9.5, 4}))
	require.Equal(t, "no", r.cells(figure{9.5, 3})[5], "too far from the floor")
	require.Equal(t, "no", r.cells(figure{10.1, 8})[5])
	share := row{name: "efficiency", target: target{least: 0.98}}
	require.Equal(t, []string{"efficiency", "0.981", "–", "–", "≥ 0.98", "yes"}, share.cells(figure{Value: 0.9812}))
	require.Equal(t, "no", share.cells(figure{Value: 0.97})[5])
	require.Equal(t, []string{"packages", "1,234,567", "–", "–", "–", "–"}, row{name: "packages"}.cells(figure{Value: 1234567}))
	for x, want := range map[float64]string{0: "0", 0.04175: "0.0418", 3.14159: "3.14", 99.95: "100", 999: "999", 1000: "1,000"} {
		require.Equal(t, want, digits(x))
	}
}
