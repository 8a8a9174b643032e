package house_test

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// untidy lists texts that no file of the repository contains. The patterns do not match
// themselves.
var untidy = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"a note to do something later", regexp.MustCompile(`\b(T[O]DO|F[I]XME|X[X]X)\b`)},
	{"a path of somebody's machine", regexp.MustCompile(`(^|[\s"'=(` + "`" + `])(/(home|Users)/\w|/(root|work)/|[A-Z]:\\Users\\)`)},
	{"a merge conflict", regexp.MustCompile(`(?m)^(<{7}|>{7}) `)},
}

// mayHoldAnything reports whether tests use the content of the file as data, or others wrote it.
func mayHoldAnything(name string) bool {
	return strings.Contains("/"+name, "/testdata/") || filepath.Base(name) == "go.sum" || strings.HasPrefix(name, copiesDir+"/")
}

func TestRepositoryIsTidy(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(repositoryRoot)
	require.NoError(t, err)
	for _, name := range repositoryFiles(t, root) {
		if mayHoldAnything(name) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, but not committed yet
		}
		require.NoError(t, err)
		if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
			continue
		}
		for _, u := range untidy {
			if at := u.pattern.FindIndex(content); at != nil {
				t.Errorf("%s:%d: holds %s: %q", name, 1+bytes.Count(content[:at[0]], []byte("\n")), u.what, content[at[0]:at[1]])
			}
		}
		if at := bytes.Index(content, []byte(root+string(filepath.Separator))); at >= 0 {
			t.Errorf("%s:%d: holds the path of this checkout", name, 1+bytes.Count(content[:at], []byte("\n")))
		}
	}
}

var screenshot = regexp.MustCompile(`[.]screenshot\(\{[^\n]*`)

// Pictures caught a bar at half of its way, and a page in the middle of a fade. Playwright ends
// all transitions first if it is asked to.
func TestScreenshotsShowSettledPages(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range repositoryFiles(t, repositoryRoot) {
		if !strings.HasSuffix(name, ".mjs") && name != ".ci/newcomer" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(repositoryRoot, name))
		require.NoError(t, err)
		for _, call := range screenshot.FindAllString(string(content), -1) {
			require.Contains(t, call, "animations: 'disabled'", name)
			found++
		}
	}
	require.NotZero(t, found)
}

func TestUntidyPatternsBite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"// TO" + "DO: later":          true,
		"cd /ho" + "me/ann/src":        true,
		`"/wo` + `rk/main/eval.yaml"`:  true,
		"<<<<<<" + "< HEAD":            true,
		"see docs/ho" + "me/here":      false,
		"path: /path/to/eval.yaml":     false,
		"https://example.org/home/ann": false,
	} {
		found := false
		for _, u := range untidy {
			found = found || u.pattern.MatchString(text)
		}
		require.Equal(t, want, found, "%q", text)
	}
}

// repositoryFiles lists the files that git tracks or would add. It opens their directories, because
// the go command reuses a result of a test only while what the test opened is the same: otherwise a
// new file would not be checked.
func repositoryFiles(t *testing.T, root string) []string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	list := exec.Command(git, "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := list.Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	files := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	if len(files) == 0 {
		t.Skip("the files are not those of a git checkout")
	}
	opened := map[string]bool{}
	for _, name := range files {
		for dir := path.Dir(name); !opened[dir]; dir = path.Dir(dir) {
			opened[dir] = true
			_, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
			if !os.IsNotExist(err) { // removed, but not committed yet
				require.NoError(t, err)
			}
		}
	}
	return files
}
