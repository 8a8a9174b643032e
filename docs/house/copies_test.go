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

// copies are the libraries below .third_party/: the release that each is a copy of, and the files
// that waza changed.
var copies = map[string]struct {
	module, version string
	changed         []string
}{
	"jsonschema": {"github.com/santhosh-tekuri/jsonschema/v6", "v6.0.3", []string{"compiler.go", "draft.go"}},
	"md2man":     {"github.com/cpuguy83/go-md2man/v2", "v2.0.7", []string{"go.mod", "md2man/md2man.go"}},
	"pprof": {
		"github.com/google/pprof", "v0.0.0-20260802141513-ef3492d7dac3",
		[]string{"go.mod", "profile/profile.go"},
	},
}

// A copy of a library is that of the release that go.mod requires, and differs from it only where
// .third_party/README.md says so.
func TestCopiesMatchTheirReleases(t *testing.T) {
	t.Parallel()
	entries, err := fs.Glob(os.DirFS(filepath.Join(repositoryRoot, copiesDir)), "*/go.mod")
	require.NoError(t, err)
	require.Len(t, entries, len(copies))
	mod, err := os.ReadFile(filepath.Join(repositoryRoot, "go.mod"))
	require.NoError(t, err)
	for name, library := range copies {
		require.Contains(t, string(mod), "\t"+library.module+" "+library.version)
		require.Contains(t, string(mod), "\t"+library.module+" => ./"+copiesDir+"/"+name+"\n")

		release := library.module + "@" + library.version
		download := exec.Command("go", "mod", "download", "-json", release)
		download.Dir = t.TempDir() // outside waza's module, which replaces the library
		out, err := download.Output()
		if err != nil {
			t.Skipf("%s cannot be downloaded: %s", release, out)
		}
		var original struct{ Dir string }
		require.NoError(t, json.Unmarshal(out, &original))

		files := os.DirFS(filepath.Join(repositoryRoot, copiesDir, name))
		var changed []string
		require.NoError(t, fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			ours, err := fs.ReadFile(files, file)
			require.NoError(t, err)
			theirs, err := os.ReadFile(filepath.Join(original.Dir, filepath.FromSlash(file)))
			require.NoError(t, err)
			if string(ours) != string(theirs) {
				changed = append(changed, file)
			}
			return nil
		}))
		require.Equal(t, library.changed, changed, "files of %s/%s that differ from %s", copiesDir, name, release)
	}
}
