package reach

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a/x.txt": "x", "a/sub/y.txt": "y", "same/x.txt": "x", "same/sub/y.txt": "y",
		"other/x.txt": "x", "other/sub/y.txt": "z", "more/x.txt": "x", "more/sub/y.txt": "y", "more/z.txt": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "same", true}, {"a", "other", false}, {"a", "more", false}, {"a", "a", true}, {"a", "none", false},
		{"a/x.txt", "same/x.txt", true}, {"a/x.txt", "a/sub/y.txt", false}, {"a/x.txt", "a", false}, {"a/x.txt", "none", false},
	} {
		require.Equal(t, c.want, Same(filepath.Join(dir, c.a), filepath.Join(dir, c.b)), "%s and %s", c.a, c.b)
	}
}
