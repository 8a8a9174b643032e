package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
	"waza/runner/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// run runs a program in a sandbox with a workspace.
func run(t testing.TB, s *sandbox.Sandboxes, v sandbox.View, dir string, args ...string) (string, error) {
	t.Helper()
	out := &proc.Limited{Max: 1 << 20}
	err := proc.Run(t.Context(), proc.Command{Args: args, Dir: dir, Stdout: out, Stderr: out, Sandbox: s.For(v)})
	return out.String(), err
}

func TestTry(t *testing.T) {
	t.Log(sandbox.Detect().Describe())
	for _, tier := range sandbox.Detect().Tiers() {
		s, err := sandbox.Open(tier, sandbox.Policy{Limits: sandbox.Limits{Processes: 100}})
		require.NoError(t, err)
		defer s.Close()
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("hello\n"), 0o600))
		out, err := run(t, s, sandbox.View{Write: []string{dir}}, dir, "sh", "-c", `id; cat a; echo x > b; ls -la / /tmp /root /home; cat /proc/$PPID/environ | wc -c; touch /usr/x; python3 -c 'print(1)'; node -e 'console.log(2)'; go version; kill -0 $PPID; sleep 1000 & `)
		t.Log(tier, out)
		require.NoError(t, err)
	}
}

func BenchmarkStart(b *testing.B) {
	for _, tier := range sandbox.Detect().Tiers() {
		b.Run(string(tier), func(b *testing.B) {
			dir := b.TempDir()
			s, err := sandbox.Open(tier, sandbox.Policy{})
			require.NoError(b, err)
			defer s.Close()
			for b.Loop() {
				_, err := run(b, s, sandbox.View{Write: []string{dir}}, dir, "/bin/true")
				require.NoError(b, err)
			}
		})
	}
}
