package sandbox_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// BenchmarkStart compares the starts of /bin/true: directly, in a sandbox of each tier and, if it
// is installed, by bubblewrap. Each round does all of them once, so that all have the same
// conditions. The metrics are, in ms, the median of each and what it adds to a direct start.
func BenchmarkStart(b *testing.B) {
	type way struct {
		name  string
		start func() error
		times []time.Duration
	}
	dir := b.TempDir()
	program := func(s *proc.Sandbox, args ...string) func() error {
		return func() error {
			return proc.Run(b.Context(), proc.Command{Args: args, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Sandbox: s})
		}
	}
	ways := []*way{{name: "direct", start: program(nil, "/bin/true")}}
	limits := sandbox.Limits{Memory: 2 << 30, Processes: 256, Disk: 4 << 30}
	for _, tier := range sandbox.Detect().Tiers() {
		if tier != record.TierNone {
			s := open(b, tier, sandbox.Policy{Limits: limits})
			ways = append(ways, &way{name: string(tier), start: program(s.For(sandbox.View{Write: []string{dir}}), "/bin/true")})
		}
	}
	if sandbox.Detect().Namespaces == nil {
		s := open(b, record.TierNamespaces, sandbox.Policy{Limits: limits, Isolated: true})
		ways = append(ways, &way{name: "isolated", start: program(s.For(sandbox.View{Write: []string{dir}}), "/bin/true")})
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		args := []string{bwrap, "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--bind", dir, dir, "--tmpfs", "/tmp"}
		for _, path := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc"} {
			if _, err := os.Stat(path); err == nil {
				args = append(args, "--ro-bind", path, path)
			}
		}
		ways = append(ways, &way{name: "bubblewrap", start: program(nil, append(args, "/bin/true")...)})
	}
	for _, w := range ways {
		require.NoError(b, w.start(), w.name) // the first start of a tier starts its keeper
	}
	for b.Loop() {
		for _, w := range ways {
			begin := time.Now()
			if err := w.start(); err != nil {
				b.Fatal(w.name, err)
			}
			w.times = append(w.times, time.Since(begin))
		}
	}
	direct := time.Duration(0)
	for _, w := range ways {
		slices.Sort(w.times)
		median := w.times[len(w.times)/2]
		if w.name == "direct" {
			direct = median
		}
		b.ReportMetric(float64(median)/1e6, w.name+"-ms")
		if w.name != "direct" {
			b.ReportMetric(float64(median-direct)/1e6, w.name+"-over-direct-ms")
		}
	}
}
