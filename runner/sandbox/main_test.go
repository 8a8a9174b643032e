package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	if len(os.Args) == 3 && os.Args[1] == probeArgument {
		probes[os.Args[2]]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// probeArgument makes this program one that runs in a sandbox and prints what it finds there. The
// next argument names a function of probes.
const probeArgument = "probe"

// probes are the functions that this program runs in sandboxes, by name.
var probes = map[string]func(){}

// open opens sandboxes, or skips the test on a machine without the tier.
func open(t testing.TB, tier record.Tier, p sandbox.Policy) *sandbox.Sandboxes {
	t.Helper()
	lacking := map[record.Tier]error{
		record.TierNamespaces: sandbox.Detect().Namespaces, record.TierLandlock: sandbox.Detect().Landlock, record.TierSeatbelt: sandbox.Detect().Seatbelt,
	}
	if err := lacking[tier]; err != nil {
		t.Skipf("%s: %v", tier, err)
	}
	s, err := sandbox.Open(tier, p)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// run runs a program in a sandbox, and returns its output. dir is its working directory.
func run(t testing.TB, s *sandbox.Sandboxes, v sandbox.View, dir string, args ...string) (string, error) {
	t.Helper()
	if v.Env == nil {
		v.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nowhere"}
	}
	out := &proc.Limited{Max: 1 << 20}
	err := proc.Run(t.Context(), proc.Command{Args: args, Dir: dir, Env: v.Env, Stdout: out, Stderr: out, Sandbox: s.For(v)})
	return out.String(), err
}

// shell runs a script that must succeed, in a workspace that it can change.
func shell(t testing.TB, s *sandbox.Sandboxes, dir, script string) string {
	t.Helper()
	out, err := run(t, s, sandbox.View{Write: []string{dir}}, dir, "sh", "-c", script)
	require.NoError(t, err, out)
	return out
}

// write creates a file with its directories, and returns its path.
func write(t testing.TB, text string, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// outside returns a directory that no program sees unless a view or policy names it. It is not
// below the directory of temporary files, which the tier Landlock shows.
func outside(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var", "waza-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
