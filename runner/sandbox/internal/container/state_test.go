package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/container"
)

// Programs with a state find the files that the earlier ones left, at their places; the image of the
// state is removed with it.
func TestState(t *testing.T) {
	state := standIn(t, "docker")
	c := open(t)
	defer c.Close()
	dir, logs := t.TempDir(), t.TempDir()
	image := filepath.Join(state, "images", "base")
	for name, content := range map[string]string{"app/of-image": "image", "app/removed": "", "logs/old": "", "root/home": "home"} {
		file := filepath.Join(image, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".outside", "root"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "given"), []byte("given"), 0o600))
	p := program(dir, "sh", "-c", "cat of-image given; echo -n changed >given; rm removed; echo -n installed >../opt; cat .outside/root/home; echo x >.outside/root/x; echo forged >../logs/reward; ls -d ../logs/*")
	p.Places = []container.Place{{Source: dir, Target: "/app"}, {Source: filepath.Join(dir, ".outside", "root"), Target: "/root"}}
	p.State, p.Keep = "trial", true
	out, err := run(t, c, container.Box{Image: container.Image{Name: "debian"}}, p)
	require.NoError(t, err)
	require.Equal(t, "imagegivenhome../logs/old\n../logs/reward\n", out)
	for name, want := range map[string]string{"of-image": "image", "given": "changed", ".outside/root/home": "home", ".outside/root/x": "x\n"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoFileExists(t, filepath.Join(dir, "removed"))

	// A verifier sees the same files, with new logs. Its changes disappear.
	p = program(dir, "sh", "-c", "cat given ../opt; ls; ls ../logs; echo 1 >../logs/reward; echo y >given")
	p.In, p.Out = []string{dir, logs}, []string{logs}
	p.Places = []container.Place{{Source: dir, Target: "/app"}, {Source: filepath.Join(dir, ".outside", "root"), Target: "/root"}, {Source: logs, Target: "/logs", Fresh: true}}
	p.State = "trial"
	for range 2 {
		out, err = run(t, c, container.Box{Image: container.Image{Name: "debian"}}, p)
		require.NoError(t, err)
		require.Equal(t, "changedinstalledgiven\nof-image\n", strings.Replace(out, "reward\n", "", 1))
		text, err := os.ReadFile(filepath.Join(logs, "reward"))
		require.NoError(t, err)
		require.Equal(t, "1\n", string(text))
	}
	images, err := os.ReadDir(filepath.Join(state, "images"))
	require.NoError(t, err)
	require.Len(t, images, 2)
	c.Forget("trial")
	c.Close()
	images, err = os.ReadDir(filepath.Join(state, "images"))
	require.NoError(t, err)
	require.Len(t, images, 1)
}

// An earlier program cannot give a later one files in its new directories: neither by links, nor by files
// in place of directories, nor by replaced programs.
func TestStateForged(t *testing.T) {
	state := standIn(t, "docker")
	c := open(t)
	defer c.Close()
	box := container.Box{Image: container.Image{Name: "debian"}}
	for name, agent := range map[string]string{
		"a link to the workspace": "rm -rf ../logs; ln -s app/l ../logs",
		"a link to the directory": "rm -rf ../logs; mkdir ../logs; ln -s ../app/l/verifier ../logs/verifier",
		"a file":                  "rm -rf ../logs; echo >../logs",
		"its own file":            "rm -rf ../logs; mkdir -p ../logs/verifier; echo 1 >../logs/verifier/reward",
	} {
		for _, replaced := range []bool{false, true} {
			dir, logs, tests := t.TempDir(), t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(tests, "test.sh"), []byte("planned"), 0o600))
			p := program(dir, "sh", "-c", "mkdir -p l/verifier; echo 1 >l/verifier/reward; "+agent)
			p.Places = []container.Place{{Source: dir, Target: "/app"}}
			p.State, p.Keep = name, true
			out, err := run(t, c, box, p)
			require.NoError(t, err, name+out)
			if replaced {
				require.NoError(t, os.WriteFile(filepath.Join(state, "replaced-rm"), nil, 0o600))
			}
			p = program(dir, "sh", "-c", "ls ../logs/verifier; cat ../tests/test.sh; echo 0 >../logs/verifier/score")
			p.In, p.Out = []string{dir, logs, tests}, []string{logs}
			p.Places = []container.Place{
				{Source: dir, Target: "/app"}, {Source: logs, Target: "/logs/verifier", Fresh: true}, {Source: tests, Target: "/tests", Fresh: true},
			}
			p.State = name
			out, err = run(t, c, box, p)
			if replaced {
				switch name {
				case "a link to the directory": // a copy replaces it
					require.NoError(t, err)
					require.NoFileExists(t, filepath.Join(logs, "reward"))
				case "a file": // nothing can be copied there
					require.ErrorContains(t, err, "cannot be copied into the container")
				default:
					require.ErrorIs(t, err, container.ErrMeddled, name)
				}
				require.NoError(t, os.Remove(filepath.Join(state, "replaced-rm")))
			} else {
				require.NoError(t, err, name+out)
				require.Equal(t, "planned", out, name)
				require.NoFileExists(t, filepath.Join(logs, "reward"), name)
				require.FileExists(t, filepath.Join(logs, "score"), name)
			}
			c.Forget(name)
		}
	}
}

// The directories of this machine disappear when a program removes or replaces their places, which is no
// error of the program.
func TestDirectoriesGone(t *testing.T) {
	standIn(t, "docker")
	c := open(t)
	defer c.Close()
	box := container.Box{Image: container.Image{Name: "debian"}}
	for _, line := range []string{"rm -rf ../app", "rm -rf ../app; echo >../app", "rm -rf ../app; ln -s etc ../app"} {
		dir := t.TempDir()
		p := program(dir, "sh", "-c", line)
		p.Places = []container.Place{{Source: dir, Target: "/app"}}
		_, err := run(t, c, box, p)
		require.NoError(t, err, line)
		require.NoDirExists(t, dir, line)

		dir = t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, ".outside", "app"), 0o755))
		p = program(dir, "sh", "-c", line)
		p.Places = []container.Place{{Source: dir, Target: "/work"}, {Source: filepath.Join(dir, ".outside", "app"), Target: "/app"}}
		_, err = run(t, c, box, p)
		require.NoError(t, err, line)
		require.DirExists(t, dir, line)
		require.NoDirExists(t, filepath.Join(dir, ".outside", "app"), line)
	}
}

// A program cannot use the files of one that is still running, and links that a program leaves do not
// lead out of the directory.
func TestStateRefuses(t *testing.T) {
	state := standIn(t, "docker")
	c := open(t)
	defer c.Close()
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	box := container.Box{Image: container.Image{Name: "debian"}}
	p := program(dir, "sleep", "600")
	p.State, p.Keep = "trial", true
	started, err := c.Start(box, p)
	require.NoError(t, err)
	second := program(dir, "true")
	second.State = "trial"
	_, err = run(t, c, box, second)
	require.ErrorContains(t, err, "the agent is still running, and the files in its container cannot be seen from outside")
	started.Kill()
	_ = started.Wait()
	_, err = run(t, c, box, second)
	require.NoError(t, err)

	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".outside", "root"), 0o755))
	p = program(dir, "sh", "-c", "echo x >../root/x; rm -r .outside; ln -s "+outside+" .outside")
	p.Places = []container.Place{{Source: dir, Target: "/app"}, {Source: filepath.Join(dir, ".outside", "root"), Target: "/root"}}
	_, err = run(t, c, box, p)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(outside, "kept"))
	require.FileExists(t, filepath.Join(dir, ".outside", "root", "x"))
	require.NoDirExists(t, filepath.Join(outside, "root"))

	require.NoError(t, os.WriteFile(filepath.Join(state, "fails-commit"), []byte("no space left\n"), 0o600))
	p = program(t.TempDir(), "true")
	p.State, p.Keep = "other", true
	_, err = run(t, c, box, p)
	require.ErrorContains(t, err, "the files of the container cannot be kept for later programs: docker commit: exit status 1: no space left")
	var lost *proc.LostError
	require.ErrorAs(t, err, &lost)
	p.Keep = false
	_, err = run(t, c, box, p)
	require.ErrorContains(t, err, "no space left", "no verifier may judge without the files of the agent")
}
