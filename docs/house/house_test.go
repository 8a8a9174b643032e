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

// besideTheirUsers are packages outside internal/ that only one folder imports.
var besideTheirUsers = map[string]string{
	"runner/grader": "it is the contract of the families of graders below it",
}

// onlyUsers returns, for each package of eval, runner and rpc, the deepest folder that contains
// everything that imports it, tests included. The folder is empty if users are on several floors.
func onlyUsers(files []goFile) map[string]string {
	users := map[string]string{}
	for _, file := range files {
		for _, imported := range file.imports {
			pkg, ok := strings.CutPrefix(imported, "waza/")
			dir := path.Dir(file.path)
			if !ok || pkg == dir {
				continue
			}
			if of, known := users[pkg]; known {
				dir = common(of, dir)
			}
			users[pkg] = dir
		}
	}
	return users
}

// A package that only one floor, or one folder of it, imports is below the internal/ of that
// folder, so that its exported names do not look like API. Siblings stay side by side.
func TestPackagesOfOneFolderAreInternal(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for pkg, folder := range onlyUsers(goFiles(t)) {
		top, _, below := strings.Cut(pkg, "/")
		floor, _, _ := strings.Cut(folder, "/")
		isSibling := slices.ContainsFunc(siblings, func(s sibling) bool { return path.Dir(pkg) == s.parent })
		if !below || floor != top || top == "cmd" || isSibling || strings.Contains(pkg, "/internal/") {
			continue
		}
		if besideTheirUsers[pkg] != "" {
			used[pkg] = true
			continue
		}
		t.Errorf("only %s imports %s: move it below internal/", folder, pkg)
	}
	for pkg := range besideTheirUsers {
		if !used[pkg] {
			t.Errorf("%s needs no exception", pkg)
		}
	}
}

func TestOnlyUsers(t *testing.T) {
	t.Parallel()
	file := func(name, imported string) goFile { return goFile{path: name, imports: []string{imported}} }
	users := onlyUsers([]goFile{
		file("runner/run.go", "waza/runner/cache"), file("runner/plan/plan.go", "waza/runner/cache"),
		file("rpc/mcp/mcp.go", "waza/runner/stats"), file("runner/run.go", "waza/runner/stats"),
		file("rpc/run.go", "waza/rpc/wire"),
	})
	require.Equal(t, map[string]string{"runner/cache": "runner", "runner/stats": "", "rpc/wire": "rpc"}, users)
}
