package checkout_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/files"
	"waza/runner/internal/checkout"
)

// A commit from a pack is checked out like one from its own repository, with its history.
func TestPack(t *testing.T) {
	t.Parallel()
	src, ctx := repository(t), t.Context()
	one, err := checkout.Resolve(ctx, src, "v1")
	require.NoError(t, err)
	two, err := checkout.Resolve(ctx, src, "main")
	require.NoError(t, err)

	away := filepath.Join(t.TempDir(), "repo")
	for _, id := range []string{two, one, one} { // one after the other, and one of them twice
		var b bytes.Buffer
		size, err := checkout.Pack(ctx, src, id, &b, 1<<20)
		require.NoError(t, err)
		require.EqualValues(t, b.Len(), size)
		require.NoError(t, checkout.Unpack(ctx, &b, id, away))
	}
	for id, want := range map[string]string{one: "one", two: "two"} {
		dir := filepath.Join(t.TempDir(), "work")
		require.NoError(t, checkout.Make(ctx, away, id, dir))
		require.Equal(t, want, read(t, dir, "a.txt"))
		require.Equal(t, "b", read(t, dir, "sub/b.txt"))
		require.Equal(t, run(t, src, "log", "--format=%H %s", id), run(t, dir, "log", "--format=%H %s"))
		require.Empty(t, run(t, dir, "status", "--porcelain"))
	}
}

func TestPackErrors(t *testing.T) {
	t.Parallel()
	src, ctx := repository(t), t.Context()
	one, err := checkout.Resolve(ctx, src, "v1")
	require.NoError(t, err)
	two, err := checkout.Resolve(ctx, src, "main")
	require.NoError(t, err)

	_, err = checkout.Pack(ctx, src, one, new(bytes.Buffer), 100)
	require.ErrorIs(t, err, files.ErrTooLarge)
	require.ErrorContains(t, err, "with its history")
	_, err = checkout.Pack(ctx, src, "0123456789012345678901234567890123456789", new(bytes.Buffer), 1<<20)
	require.ErrorContains(t, err, "git cannot pack")

	var b bytes.Buffer
	_, err = checkout.Pack(ctx, src, one, &b, 1<<20)
	require.NoError(t, err)
	require.ErrorContains(t, checkout.Unpack(ctx, bytes.NewReader(b.Bytes()), two, filepath.Join(t.TempDir(), "r")),
		"does not contain the commit")
	require.ErrorContains(t, checkout.Unpack(ctx, bytes.NewReader(b.Bytes()[:b.Len()-10]), one, filepath.Join(t.TempDir(), "r")),
		"git cannot unpack")
	require.ErrorContains(t, checkout.Unpack(ctx, bytes.NewReader([]byte("no pack")), one, filepath.Join(t.TempDir(), "r")),
		"git cannot unpack")
}
