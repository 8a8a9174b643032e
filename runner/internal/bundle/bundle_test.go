package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"waza/eval"
	"waza/eval/reach"
	"waza/runner/executor/command"
	"waza/runner/record"
)

// owner creates the directory of an owner with a suite, and returns it with an order.
func owner(t *testing.T) (dir string, o *record.Order) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "owner")
	write(t, dir, `
-- repo/.git/HEAD --
ref
-- repo/shared/lib.txt --
shared
-- repo/shared/deep/other.txt --
other
-- repo/unused.txt --
unused
-- repo/tools/agent.sh --
#!/bin/sh
-- repo/evals/demo/eval.yaml --
name: demo
-- repo/evals/demo/rows.csv --
prompt
-- repo/evals/demo/.env --
KEY=secret
-- repo/evals/demo/node_modules/x.js --
x
-- repo/evals/demo/sub/.git --
gitdir: elsewhere
-- repo/evals/demo/sub/__pycache__/x.pyc --
x
-- repo/evals/demo/sub/script.sh --
#!/bin/sh
-- repo/evals/demo/fixtures/.env.test --
named by a task
-- skills/greet/SKILL.md --
greet
-- skills/greet/ref/more.md --
more
-- work/check.py --
pass
-- work/unused.py --
pass
`)
	demo := filepath.Join(dir, "repo/evals/demo")
	require.NoError(t, os.MkdirAll(filepath.Join(demo, "empty/er"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(demo, "sub/script.sh"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(demo, "eval.yaml"), 0o440))
	require.NoError(t, os.WriteFile(filepath.Join(demo, "zero"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(demo, "medium"), []byte(strings.Repeat("medium", 10_000)), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(demo, "twin"), []byte(strings.Repeat("medium", 10_000)), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(demo, "large"), []byte(strings.Repeat("large", 500_000)), 0o644))
	require.NoError(t, syscall.Mkfifo(filepath.Join(demo, "pipe"), 0o600))
	for link, to := range map[string]string{
		"repo/evals/demo/lib": "../../shared/lib.txt", "repo/evals/demo/shared": "../../shared/deep",
		"repo/evals/demo/absolute": filepath.Join(demo, "zero"), "repo/evals/demo/out": "/etc/passwd", "repo/evals/demo/nowhere": "gone",
		"repo/evals/demo/up": "../..", "repo/evals/demo/twisted": "shared/../lib.txt", "skills/linked": "greet",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	o = &record.Order{
		RunID: "r", TaskID: "a",
		Suite: &eval.Suite{Places: reach.At(filepath.Join(demo, "eval.yaml")), TasksFrom: "rows.csv"},
		Task: &eval.Task{
			File: filepath.Join(demo, "rows.csv"), Skills: []string{filepath.Join(dir, "skills/greet"), filepath.Join(dir, "skills/linked")},
			Inputs: eval.Inputs{
				Prompt: "read " + demo,
				Files:  []eval.InputFile{{Path: ".env.test", Source: filepath.Join(demo, "fixtures/.env.test")}},
			},
		},
		Options: &command.Options{
			Command: command.Line{
				Args: []string{
					"/bin/sh", "-c",
					filepath.Join(dir, "repo/tools/agent.sh") + " --with=" + filepath.Join(dir, "repo/unused.txt") + " " + filepath.Join(dir, "nothing"),
				},
			},
		},
	}
	o.Suite.WorkDir = filepath.Join(dir, "work")
	return dir, o
}

func write(t *testing.T, dir, archive string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
	}
}

// contents returns the contents of an owner, with the files that its plan read.
func contents(dir string, o *record.Order) Contents {
	c := Contents{Orders: []*record.Order{o}, Files: map[string]string{}}
	for _, name := range []string{"work/check.py", "repo/evals/demo/fixtures/.env.test"} {
		b, _ := os.ReadFile(filepath.Join(dir, name))
		c.Files[filepath.Join(dir, name)] = hashOf(b)[:recordHash]
	}
	return c
}

// tree lists the content of a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		require.NoError(t, err)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			fmt.Fprintf(&b, "%s -> %s\n", rel, to)
		case d.IsDir():
			fmt.Fprintf(&b, "%s/\n", rel)
		default:
			fmt.Fprintf(&b, "%s %o %d\n", rel, info.Mode().Perm(), info.Size())
		}
		return nil
	}))
	return b.String()
}

// Exactly the files that trials need arrive, even if the originals are gone.
func TestPackAndUnpack(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]Store{"directory": InDir(t.TempDir()), "bucket": inBucket(t, bucketConfig)} {
		t.Run(name, func(t *testing.T) {
			dir, o := owner(t)
			packed, err := Pack(t.Context(), store, contents(dir, o))
			require.NoError(t, err)
			n, bytes, sent := packed.Count()
			require.Equal(t, 28, n)
			require.Greater(t, bytes, sent-20_000, "twins are sent once")
			moved, err := packed.Relocate(o)
			require.NoError(t, err)
			require.Equal(t, o.Task.Inputs.Prompt, moved.Task.Inputs.Prompt)
			require.NoError(t, os.Rename(dir, dir+"-gone"))

			u, err := Unpack(t.Context(), store, packed.Hash(), filepath.Join(t.TempDir(), "cache"), Limits{})
			require.NoError(t, err)
			defer u.Close()
			require.Empty(t, cmp.Diff(strings.TrimLeft(`
./
0/
0/evals/
0/evals/demo/
0/evals/demo/absolute -> zero
0/evals/demo/empty/
0/evals/demo/empty/er/
0/evals/demo/eval.yaml 440 11
0/evals/demo/fixtures/
0/evals/demo/fixtures/.env.test 644 16
0/evals/demo/large 644 2500000
0/evals/demo/medium 644 60000
0/evals/demo/sub/
0/evals/demo/sub/script.sh 755 10
0/evals/demo/twin 644 60000
0/evals/demo/zero 644 0
0/tools/
0/tools/agent.sh 644 10
0/unused.txt 644 7
1/
1/check.py 644 5
2/
2/SKILL.md 644 6
2/ref/
2/ref/more.md 644 5
3/
3/SKILL.md 644 6
3/ref/
3/ref/more.md 644 5
`, "\n"), tree(t, u.Dir())))
			here, err := u.Relocate(moved)
			require.NoError(t, err)
			require.Equal(t, filepath.Join(u.Dir(), "0/evals/demo/eval.yaml"), here.Suite.File)
			require.Equal(t, filepath.Join(u.Dir(), "0"), here.Suite.Root())
			require.Equal(t, filepath.Join(u.Dir(), "1"), here.Suite.WorkDir)
			require.Equal(t, []string{filepath.Join(u.Dir(), "2"), filepath.Join(u.Dir(), "3")}, here.Task.Skills)
			require.Equal(t, []string{
				"/bin/sh", "-c",
				filepath.Join(u.Dir(), "0/tools/agent.sh") + " --with=" + filepath.Join(u.Dir(), "0/unused.txt") + " " + filepath.Join(dir, "nothing"),
			},
				here.Options.(*command.Options).Command.Args)
		})
	}
}

// A second run sends only changes.
func TestPackSendsWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store := InDir(t.TempDir())
	first, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	again, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	require.Equal(t, first.Hash(), again.Hash(), "the same files have the same name")
	list, err := os.ReadDir(store.(directory).dir)
	require.NoError(t, err)
	require.Len(t, list, 3, "the manifest, the large file and the twins")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "repo/evals/demo/large"), []byte(strings.Repeat("LARGE", 500_000)), 0o644))
	changed, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	require.NotEqual(t, first.Hash(), changed.Hash())
}

func TestPackErrors(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store := InDir(t.TempDir())
	demo := filepath.Join(dir, "repo/evals/demo")
	pack := func(change func(c *Contents)) error {
		c := contents(dir, o)
		change(&c)
		_, err := Pack(t.Context(), store, c)
		return err
	}
	require.ErrorContains(t, pack(func(c *Contents) { c.Limits.FileBytes = 1 << 20 }),
		filepath.Join(demo, "large")+" has 2.4 MiB, but a file in a fleet must have at most 1 MiB")
	require.EqualError(t, pack(func(c *Contents) { c.Limits.Bytes = 1 << 20 }),
		"files for the fleet: the files of the run have 2.5 MiB, but a fleet accepts at most 1 MiB; the largest are "+demo+
			"/large (2.4 MiB), "+demo+"/medium (58.6 KiB), "+demo+"/twin (58.6 KiB)"+
			"; move files that trials do not need out of the directories of the suite and its skills")
	require.ErrorContains(t, pack(func(c *Contents) { c.Limits.Files = 5 }),
		"28 files and directories, but a fleet accepts at most 5; the largest are ")
	require.ErrorContains(t, pack(func(c *Contents) { c.Files[filepath.Join(dir, "work/check.py")] = hashOf(nil)[:recordHash] }),
		"check.py: file changed since the run was planned")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user stopped"))
	_, err := Pack(canceled, store, contents(dir, o))
	require.ErrorContains(t, err, "the user stopped")

	reserved := *o
	reserved.Options = &command.Options{Command: command.Line{Args: []string{"sh", "waza-bundle:/0/x"}}}
	packed, err := Pack(t.Context(), store, Contents{Orders: []*record.Order{&reserved}})
	require.NoError(t, err)
	_, err = packed.Relocate(&reserved)
	require.ErrorContains(t, err, `starts with "waza-bundle:/"`)
	other := *o
	other.Task = &eval.Task{Skills: []string{"/elsewhere"}}
	_, err = packed.Relocate(&other)
	require.ErrorContains(t, err, "/elsewhere is not in a packed directory")

	require.NoError(t, os.WriteFile(filepath.Join(demo, "bad\xff"), nil, 0o644))
	require.ErrorContains(t, pack(func(*Contents) {}), "has a name that is not portable")
}

// Processes that unpack the same bundle concurrently get it complete, and unpack it once.
func TestUnpackTogether(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store := InDir(t.TempDir())
	packed, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	cache := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	trees, all := make([]string, 8), make([]*Unpacked, 8)
	for i := range all {
		wg.Go(func() {
			u, err := Unpack(t.Context(), store, packed.Hash(), cache, Limits{})
			if err == nil {
				all[i], trees[i] = u, tree(t, u.Dir())
			}
		})
	}
	wg.Wait()
	for i, u := range all {
		require.NotNil(t, u)
		require.Equal(t, trees[0], trees[i])
		require.NoError(t, u.Close())
	}
	list, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, list, 2, "the bundle and its lock")
}

// An unpacked bundle is repaired if a process changed it.
func TestUnpackRepairs(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store := InDir(t.TempDir())
	packed, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	cache := t.TempDir()
	u, err := Unpack(t.Context(), store, packed.Hash(), cache, Limits{})
	require.NoError(t, err)
	want := tree(t, u.Dir())

	demo := filepath.Join(u.Dir(), "0/evals/demo")
	change := func() {
		require.NoError(t, os.WriteFile(filepath.Join(demo, "medium"), []byte(strings.Repeat("MEDIUM", 10_000)), 0o644))
		require.NoError(t, os.RemoveAll(filepath.Join(demo, "sub")))
		require.NoError(t, os.Remove(filepath.Join(demo, "absolute")))
		require.NoError(t, os.Mkdir(filepath.Join(demo, "absolute"), 0o700))
		require.NoError(t, os.RemoveAll(filepath.Join(u.Dir(), "2")))
		require.NoError(t, os.Symlink(cache, filepath.Join(u.Dir(), "2")))
	}
	change()
	require.NoError(t, os.Mkdir(filepath.Join(demo, "more"), 0o700))
	second, err := Unpack(t.Context(), store, packed.Hash(), cache, Limits{})
	require.NoError(t, err)
	require.Equal(t, strings.Replace(want, "0/evals/demo/sub/\n", "0/evals/demo/more/\n0/evals/demo/sub/\n", 1),
		tree(t, u.Dir()), "what somebody else may use is not removed")
	b, err := os.ReadFile(filepath.Join(demo, "medium"))
	require.NoError(t, err)
	require.Equal(t, "medium", string(b[:6]))
	require.NoError(t, second.Close())
	require.NoError(t, u.Close())

	change()
	alone, err := Unpack(t.Context(), store, packed.Hash(), cache, Limits{})
	require.NoError(t, err)
	defer alone.Close()
	require.Equal(t, want, tree(t, u.Dir()))
}

func TestUnpackErrors(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store := InDir(t.TempDir())
	packed, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	cache := t.TempDir()
	unpack := func(hash string, l Limits) error {
		u, err := Unpack(t.Context(), store, hash, cache, l)
		if err == nil {
			u.Close()
		}
		return err
	}
	require.ErrorContains(t, unpack("../x", Limits{}), "invalid manifest hash")
	require.ErrorIs(t, unpack(hashOf([]byte("none")), Limits{}), ErrMissing)
	require.ErrorContains(t, unpack(packed.Hash(), Limits{Files: 3}), "exceed the limit of 3")
	require.ErrorContains(t, unpack(packed.Hash(), Limits{Bytes: 1000}), "must have at most 1000 bytes")

	large := hashOf([]byte(strings.Repeat("large", 500_000)))
	require.NoError(t, store.Put(t.Context(), large, strings.NewReader("other")))
	require.ErrorIs(t, unpack(packed.Hash(), Limits{}), errAltered)
	require.NoError(t, store.Delete(t.Context(), large))
	require.ErrorIs(t, unpack(packed.Hash(), Limits{}), ErrMissing)
	list, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, list, 1, "only the lock is left of a bundle that could not be unpacked")
	require.NoError(t, Trim(cache, 0))
	list, err = os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, list)
}

// The oldest unused bundles are removed if there is too little space.
func TestTrim(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store, cache := InDir(t.TempDir()), t.TempDir()
	require.NoError(t, Trim(filepath.Join(cache, "none"), 1))
	var all []*Unpacked
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "repo/evals/demo/zero"), []byte(fmt.Sprint(i)), 0o644))
		packed, err := Pack(t.Context(), store, contents(dir, o))
		require.NoError(t, err)
		u, err := Unpack(t.Context(), store, packed.Hash(), cache, Limits{})
		require.NoError(t, err)
		all = append(all, u)
	}
	exist := func() (list []int) {
		for i, u := range all {
			if _, err := os.Stat(u.Dir()); err == nil {
				list = append(list, i)
			}
		}
		return list
	}
	require.NoError(t, all[1].Close())
	require.NoError(t, all[0].Close())
	require.NoError(t, os.Chtimes(all[1].Dir(), stamp, stamp))
	killed := filepath.Join(cache, tempPrefix+filepath.Base(all[0].Dir())+"-1")
	require.NoError(t, os.Mkdir(killed, 0o700))

	require.NoError(t, Trim(cache, 0))
	require.Equal(t, []int{0, 1, 2}, exist())
	require.NoDirExists(t, killed, "the partial bundle of a killed process")
	require.NoError(t, Trim(cache, 6<<20))
	require.Equal(t, []int{0, 2}, exist(), "the oldest that nobody uses")
	require.NoError(t, Trim(cache, 1))
	require.Equal(t, []int{2}, exist(), "one in use stays")
	require.NoError(t, all[2].Close())
	require.NoError(t, Trim(cache, 1))
	list, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, list)
}

// Bundles that are removed while others unpack them are complete for every process that got
// them.
func TestTrimWhileOthersUnpack(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store, cache := InDir(t.TempDir()), t.TempDir()
	packed, err := Pack(t.Context(), store, contents(dir, o))
	require.NoError(t, err)
	var users, trimmers sync.WaitGroup
	done := make(chan struct{})
	faults := make(chan error, 100)
	for range 2 {
		trimmers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := Trim(cache, 1); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	for range 4 {
		users.Go(func() {
			for range 15 {
				u, err := Unpack(t.Context(), store, packed.Hash(), cache, Limits{})
				if err != nil {
					faults <- err
					return
				}
				for _, name := range []string{"0/evals/demo/large", "3/ref/more.md"} {
					if _, err := os.Stat(filepath.Join(u.Dir(), name)); err != nil {
						faults <- err
					}
				}
				if err := u.Close(); err != nil {
					faults <- err
				}
			}
		})
	}
	users.Wait()
	close(done)
	trimmers.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
	require.NoError(t, Trim(cache, 1))
	list, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Empty(t, list)
}

// The owner's process can run in a directory above the repository, or at the root of the file
// system.
func TestPackFromAbove(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	for _, workDir := range []string{"/", dir, filepath.Join(dir, "repo/evals"), filepath.Join(dir, "gone")} {
		o.Suite.WorkDir = workDir
		store := InDir(t.TempDir())
		packed, err := Pack(t.Context(), store, contents(dir, o))
		require.NoError(t, err)
		moved, err := packed.Relocate(o)
		require.NoError(t, err)
		u, err := Unpack(t.Context(), store, packed.Hash(), t.TempDir(), Limits{})
		require.NoError(t, err)
		here, err := u.Relocate(moved)
		require.NoError(t, err)
		require.FileExists(t, here.Suite.File)
		require.Equal(t, filepath.Join(here.Suite.Root(), "evals/demo/eval.yaml"), here.Suite.File)
		require.FileExists(t, filepath.Join(here.Task.Skills[0], "SKILL.md"))
		if rel, err := filepath.Rel(dir, workDir); err == nil && workDir != "/" {
			want, err := filepath.Rel(o.Suite.Root(), workDir)
			require.NoError(t, err)
			got, err := filepath.Rel(here.Suite.Root(), here.Suite.WorkDir)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s is where it was", rel)
		}
		require.Equal(t, "/bin/sh", here.Options.(*command.Options).Command.Args[0])
		require.NoError(t, u.Close())
	}
}
