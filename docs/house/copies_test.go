package house_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// copies are the libraries below third_party/: the release that each is a copy of, and the files
// that waza changed.
var copies = map[string]struct {
	release string
	changed []string
}{
	"jsonschema": {"github.com/santhosh-tekuri/jsonschema/v6@v6.0.3", []string{"compiler.go", "draft.go"}},
}

// A copy of a library differs from its release only where its README.md says so.
func TestCopiesMatchTheirReleases(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.Join(repositoryRoot, copiesDir))
	require.NoError(t, err)
	require.Len(t, entries, len(copies))
	for name, library := range copies {
		download := exec.Command("go", "mod", "download", "-json", library.release)
		download.Dir = t.TempDir() // outside waza's module, which replaces the library
		out, err := download.Output()
		if err != nil {
			t.Skipf("%s cannot be downloaded: %s", library.release, out)
		}
		var release struct{ Dir string }
		require.NoError(t, json.Unmarshal(out, &release))

		files := os.DirFS(filepath.Join(repositoryRoot, copiesDir, name))
		var changed []string
		require.NoError(t, fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || file == "README.md" {
				return err
			}
			ours, err := fs.ReadFile(files, file)
			require.NoError(t, err)
			theirs, err := os.ReadFile(filepath.Join(release.Dir, filepath.FromSlash(file)))
			require.NoError(t, err)
			if string(ours) != string(theirs) {
				changed = append(changed, file)
			}
			return nil
		}))
		require.Equal(t, library.changed, changed, "files of %s/%s that differ from %s", copiesDir, name, library.release)
	}
}
