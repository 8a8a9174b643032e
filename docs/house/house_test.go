package house_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mapLine is a line of the map in CONTRIBUTING.md: a folder and its purpose.
var mapLine = regexp.MustCompile(`(?m)^    ([a-z][\w/]*)/ +(\S.*)$`)

// folderMap reads the map in CONTRIBUTING.md, the only list of folders: their purposes by path.
func folderMap(t *testing.T) map[string]string {
	t.Helper()
	contributing, err := os.ReadFile(filepath.Join(repositoryRoot, "CONTRIBUTING.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(contributing), "## Where things go\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	folders := map[string]string{}
	for _, m := range mapLine.FindAllStringSubmatch(section, -1) {
		require.NotContains(t, folders, m[1], "CONTRIBUTING.md lists %s twice", m[1])
		folders[m[1]] = m[2]
	}
	require.Greater(t, len(folders), 100)
	return folders
}

// Each package of cmd, eval, runner and rpc is on the map in CONTRIBUTING.md, and each folder on the map
// exists.
func TestHouseMatchesTheMap(t *testing.T) {
	t.Parallel()
	folders := folderMap(t)
	for _, file := range goFiles(t) {
		dir := path.Dir(file.path)
		top, _, _ := strings.Cut(dir, "/")
		if !file.isTest() && slices.Contains([]string{"cmd", "eval", "runner", "rpc"}, top) {
			require.Contains(t, folders, dir, "CONTRIBUTING.md does not list the package %s", dir)
		}
	}
	for dir := range folders {
		require.DirExists(t, filepath.Join(repositoryRoot, filepath.FromSlash(dir)), "a folder that CONTRIBUTING.md lists")
	}
}
