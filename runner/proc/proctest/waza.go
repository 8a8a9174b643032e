package proctest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// WithWaza runs the tests of a package with waza on PATH, and returns their exit code. TestMain calls
// it. The program is a release build: with the race detector each start costs three times as much,
// and a trial with a large output eighteen times. WAZA_TEST_PROGRAM is the path of a program that was
// already built, so that packages can share it; otherwise WithWaza builds it. Settings of waza in the
// environment of the caller do not reach the tests.
//
// The tests of packages other than that of the program also call [DependOnWaza].
func WithWaza(run func() int) int {
	dir, err := os.MkdirTemp("", "waza-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "waza")
	if built := os.Getenv("WAZA_TEST_PROGRAM"); built != "" {
		err = os.Symlink(built, path)
	} else {
		err = BuildWaza(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests have no waza:", err)
		return 1
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == "WAZA_STATE" || name == "WAZA_FLEET" || name == "WAZA_AGENT_KEY" || strings.HasPrefix(name, "WAZA_SERVE_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return run()
}

// Environment returns the environment of this process with additional variables and a separate state
// directory. A server opens no doors with fixed ports, because tests run in parallel.
func Environment(t testing.TB, more ...string) []string {
	t.Helper()
	state := t.TempDir()
	require.NoError(t, os.Chmod(state, 0o700)) // waza warns about other modes
	env := append(os.Environ(), "WAZA_STATE="+state, "TERM=xterm", "NO_COLOR=", "CLICOLOR_FORCE=",
		"WAZA_SERVE_BROWSER_LISTEN=off", "WAZA_SERVE_ROUTER_LISTEN=off", "WAZA_SERVE_ROUTER_DESKTOP=false")
	return append(env, more...)
}

// BuildWaza builds waza to a path, with additional flags of go build.
func BuildWaza(path string, flags ...string) error {
	args := append([]string{"build", "-ldflags", "-s -w", "-o", path}, flags...)
	if out, err := exec.Command("go", append(args, "waza/cmd/waza")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// DependOnWaza makes the result of a test depend on the sources of waza. The go command reuses a
// result while what the test opened is the same, and does not know which program the test started.
func DependOnWaza(t testing.TB) {
	t.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	require.NoError(t, err)
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	for _, file := range []string{"go.mod", "go.sum"} {
		_, err := os.Stat(filepath.Join(root, file))
		require.NoError(t, err)
	}
	for _, dir := range []string{"cmd", "eval", "rpc", "runner", ".third_party"} {
		// Walking opens the directories, and the result then depends on the names, sizes and times of
		// their files.
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return err
		}))
	}
}
