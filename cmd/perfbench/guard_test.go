package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if runHelper(os.Args) {
		return
	}
	os.Exit(m.Run())
}

// The guard fails on a program that is worse in each figure, and names all figures. The program is
// waza with seeded regressions, and the accepted figures are those of waza without them.
func TestGuardFindsSeededRegressions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the seeded program replaces its stdout with dup3, which only Linux has")
	}
	before := measureGuarded(t, nil)
	var a accepted
	a.take(before)
	require.Len(t, a.Guard.Figures, len(guardedRows()))
	require.NoError(t, a.Guard.check(before, os.Stderr))
	err := a.Guard.check(measureGuarded(t, seeds), os.Stderr)
	for _, r := range guardedRows() {
		require.ErrorContains(t, err, r.name+": "+r.text(before.Rows[r.name].Value)+" before, now ")
	}
	require.ErrorContains(t, err, "make bench-accept")
}

// measureGuarded measures the figures of the guard for waza with some files replaced.
func measureGuarded(t *testing.T, replace func(*testing.T, *bench)) results {
	t.Helper()
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	b := &bench{root: dir, dir: t.TempDir(), self: os.Args[0], overlay: map[string]string{}}
	if replace != nil {
		replace(t, b)
	}
	measured := results{Machine: thisMachine(), Rows: map[string]figure{}}
	b.program = b.countedProgram() // so that one build has all figures
	for _, m := range measures() {
		if !m.guarded() {
			continue
		}
		list, err := m.run(t.Context(), b)
		require.NoError(t, err)
		for i, r := range m.rows {
			measured.Rows[r.name] = list[i]
		}
	}
	return measured
}

// seeds adds allocations to a start of waza and to each trial, 100 packages, and 16 MB. All of it is in
// the main package, so that no other package is compiled again.
func seeds(t *testing.T, b *bench) {
	t.Helper()
	add := func(name, text string) {
		file := filepath.Join(b.dir, filepath.Base(name))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		b.overlay[filepath.Join(b.root, "cmd", "waza", name)] = file
	}
	var packages strings.Builder
	packages.WriteString("package main\n\nimport (\n")
	for i := range 100 {
		name := fmt.Sprintf("seed%02d", i)
		add(filepath.Join(name, name+".go"), "package "+name+"\n")
		fmt.Fprintf(&packages, "\t_ %q\n", "waza/cmd/waza/"+name)
	}
	fmt.Fprintf(&packages, ")\n\nconst large = %q\n", strings.Repeat("0123456789abcdef", 1<<20))
	add("perfbench_packages.go", packages.String())
	add("perfbench_seed.go", seedSource)
}

// seedSource allocates at the start, and between waza and its stdout for each trial.
const seedSource = `package main

import (
	"bufio"
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

var kept [][]byte

func allocate(n int) {
	for range n {
		kept = append(kept, make([]byte, 100))
	}
}

func init() {
	allocate(20_000)
	if len(os.Args) > 1_000 {
		_, _ = os.Stdout.WriteString(large)
	}
	stdout, err := unix.Dup(1)
	r, w, err2 := os.Pipe()
	if err != nil || err2 != nil || unix.Dup3(int(w.Fd()), 1, 0) != nil {
		os.Exit(1)
	}
	go func() {
		out := os.NewFile(uintptr(stdout), "stdout")
		for lines := bufio.NewReader(r); ; {
			line, err := lines.ReadSlice('\n')
			if err != nil {
				return
			}
			if bytes.Contains(line, []byte("trial_complete")) {
				allocate(50)
			}
			_, _ = out.Write(line)
		}
	}()
}
`

// The guard compares figures of the same platform and language version only, and tolerates 5 %.
func TestGuardTolerance(t *testing.T) {
	t.Parallel()
	m := machine{Go: "go1.26.3", Platform: "linux/amd64"}
	g := guard{Go: "go1.26", Platform: "linux/amd64", Figures: map[string]float64{}}
	for _, r := range guardedRows() {
		g.Figures[r.name] = 1000
	}
	with := func(name string, value float64) results {
		r := results{Machine: m, Rows: map[string]figure{}}
		for name := range g.Figures {
			r.Rows[name] = figure{Value: 1000}
		}
		r.Rows[name] = figure{Value: value}
		return r
	}
	for name := range maps.Keys(g.Figures) {
		var notices strings.Builder
		require.NoError(t, g.check(with(name, 1049), &notices))
		require.NoError(t, g.check(with(name, 951), &notices))
		require.Empty(t, notices.String())
		err := g.check(with(name, 1060), &notices)
		require.ErrorContains(t, err, name+": 1,000")
		require.ErrorContains(t, err, "(+6.0 %)")
		require.Equal(t, 1, strings.Count(err.Error(), "before, now"), "only this figure")
		require.NoError(t, g.check(with(name, 900), &notices))
		require.Contains(t, notices.String(), "notice: "+name)
	}
	other := with("linked packages", 2000)
	other.Machine.Go = "go1.27"
	var notices strings.Builder
	require.NoError(t, g.check(other, &notices))
	require.Contains(t, notices.String(), "the guard compared nothing")
	require.Equal(t, "go1.26", minor("go1.26.3"))
	require.NotEmpty(t, minor(runtime.Version()))
}

// Accepting keeps the figures that were not measured.
func TestAccept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "accepted.json")
	a, err := readAccepted(file)
	require.NoError(t, err, "no figures are accepted yet")
	m := machine{Go: "go1.26", Platform: "linux/amd64"}
	a.take(results{m, map[string]figure{"linked packages": {Value: 10}, "start to the first answer": {20, 1}}})
	a.take(results{m, map[string]figure{"linked packages": {Value: 9}}})
	require.NoError(t, a.write(file))
	a, err = readAccepted(file)
	require.NoError(t, err)
	require.Equal(t, guard{"go1.26", "linux/amd64", map[string]float64{"linked packages": 9}}, a.Guard)
	require.Equal(t, map[string]figure{"linked packages": {Value: 9}, "start to the first answer": {20, 1}}, a.Table.Rows)

	other := machine{Go: "go1.26", Platform: "linux/amd64", Processor: "a Z80"}
	a.take(results{other, map[string]figure{"memory at 50,000 trials": {Value: 7}}})
	require.Equal(t, m, a.Table.Machine)
	require.Equal(t, map[string]machine{"memory at 50,000 trials": other}, a.Apart)
	require.Contains(t, page(a), "cores of a Z80, linux/amd64, go1.26: *memory at 50,000 trials*. ")
	a.take(results{other, map[string]figure{"memory at 50,000 trials": {Value: 7}, "start to the first answer": {20, 1}}})
	require.Equal(t, other, a.Table.Machine)
	require.Empty(t, a.Apart)

	a.take(results{machine{Go: "go1.27", Platform: "linux/amd64"}, map[string]figure{"allocations per trial": {Value: 8}}})
	require.Equal(t, guard{"go1.27", "linux/amd64", map[string]float64{"allocations per trial": 8}}, a.Guard, "figures of another version are dropped")
}

func TestMedians(t *testing.T) {
	t.Parallel()
	calls := ""
	values := map[string][]float64{"a": {9, 1, 2}, "b": {30, 10, 20}}
	next := func(name string) func() ([]float64, error) {
		return func() ([]float64, error) {
			calls += name
			v := values[name][0]
			values[name] = values[name][1:]
			return []float64{v, 2 * v}, nil
		}
	}
	list, err := besideFloor(3, next("a"), next("b"))
	require.NoError(t, err)
	require.Equal(t, []figure{{2, 20}, {4, 40}}, list)
	require.Equal(t, "ababab", calls)
}
