package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

var cloneMeasure = measure{
	title: "Clone",
	rows: []row{
		{name: "clone to first result, caches cold", unit: "s", target: target{most: 100}},
		{name: "clone to first result, processor time", unit: "s", target: target{most: 150}},
	},
	how: "`git clone` of the repository from the local disk, `go build -o waza ./cmd/waza` with an empty build cache, and `waza run` of a " +
		"suite with one task. The modules have been downloaded before. The processor time is that of all three, with their programs.",
	floor: "`go build` of an empty program with an empty build cache, which compiles the runtime of Go.",
	slow:  true,
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		suite, err := b.suite(mockSuite(1, 1, 1))
		if err != nil {
			return nil, err
		}
		return besideFloor(1, func() ([]float64, error) {
			u, err := b.cold(func(dir string) []*exec.Cmd {
				clone := filepath.Join(dir, "clone")
				return []*exec.Cmd{
					exec.CommandContext(ctx, "git", "clone", "--quiet", b.root, clone),
					in(clone, exec.CommandContext(ctx, "go", "build", "-o", "waza", "./cmd/waza")),
					in(clone, exec.CommandContext(ctx, filepath.Join(clone, "waza"), "run", suite)),
				}
			})
			return u.seconds(), err
		}, func() ([]float64, error) {
			u, err := b.cold(func(dir string) []*exec.Cmd {
				empty := filepath.Join(b.dir, "empty.go")
				if err := os.WriteFile(empty, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
					return nil
				}
				return []*exec.Cmd{in(dir, exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "empty"), empty))}
			})
			return u.seconds(), err
		})
	},
}

func in(dir string, cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = dir
	return cmd
}

// cold executes programs with an empty build cache, one after the other.
func (b *bench) cold(programs func(dir string) []*exec.Cmd) (u used, err error) {
	dir, err := os.MkdirTemp(b.dir, "cold")
	if err != nil {
		return u, err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	for _, cmd := range programs(dir) {
		cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"), "WAZA_STATE="+filepath.Join(dir, "state"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return u, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
		}
		u.processor += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	u.wall = time.Since(start)
	return u, nil
}
