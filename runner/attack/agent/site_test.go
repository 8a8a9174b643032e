package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A forger that somebody starts outside of an attack does nothing.
func TestForgersStayInAttacks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("main.py", []byte("mine\n"), 0o600))
	for _, brief := range []string{"", "{}", `{"temp": "` + filepath.Join(dir, "other") + `"}`} {
		t.Setenv(briefVariable, brief)
		for _, name := range append(Names(), daemonName) {
			a, _ := Find(name)
			if a.act == nil && name != daemonName || a.Solves {
				continue
			}
			var stderr bytes.Buffer
			require.Equal(t, 2, play(name, strings.NewReader("Repair main.py."), &bytes.Buffer{}, &stderr), name)
			require.Contains(t, stderr.String(), "is not a workspace of an attack")
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	text, err := os.ReadFile("main.py")
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(text))
}

// A forger in its workspace does not follow links out of it.
func TestForgersFollowNoLinks(t *testing.T) {
	temp, mine := t.TempDir(), t.TempDir()
	dir := filepath.Join(temp, "workspace")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(mine, "main.py"), []byte("mine\n"), 0o600))
	require.NoError(t, os.Symlink(mine, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(filepath.Join(mine, "main.py"), filepath.Join(dir, "main.py")))
	t.Chdir(dir)
	t.Setenv(briefVariable, `{"suite": "`+mine+`", "state": "`+mine+`", "temp": "`+temp+`", "run": "r"}`)
	ofProcess := []string{"daemon", "descriptors", "tool-calls", "flood"} // they write to descriptors of the test
	for _, a := range All() {
		if a.Forges() && !slices.Contains(ofProcess, a.Name) {
			require.Zero(t, play(a.Name, strings.NewReader("Repair main.py and link/main.py."), &bytes.Buffer{}, os.Stderr), a.Name)
		}
	}
	entries, err := os.ReadDir(mine)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	text, err := os.ReadFile(filepath.Join(mine, "main.py"))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(text))
}

func TestPathsIn(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"src/a.py", "b.txt", "c.js"}, pathsIn("Write src/a.py, `b.txt` and src/../c.js; also b.txt."))
}

// The script of a solution is found in both styles of YAML, and the scripts of graders are not.
func TestSolutionKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"solution: solve.sh": "solve.sh", "solution:\n  script: a/solve.py\n": "a/solve.py", "{solution: {output: x, script: 'b.sh'}}": "b.sh",
		"{type: script, config: {script: check.sh}}": "",
	} {
		got := ""
		if m := solutionKey().FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		require.Equal(t, want, got, text)
	}
}
