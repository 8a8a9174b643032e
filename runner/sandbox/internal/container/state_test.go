package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	p = program(dir, "sh", "-c", "rm -r .outside; ln -s "+outside+" .outside")
	p.Places = []container.Place{{Source: dir, Target: "/app"}, {Source: filepath.Join(dir, ".outside", "root"), Target: "/root"}}
	_, err = run(t, c, box, p)
	require.ErrorContains(t, err, "cannot be copied from the container")
	require.FileExists(t, filepath.Join(outside, "kept"))

	require.NoError(t, os.WriteFile(filepath.Join(state, "fails-commit"), []byte("no space left\n"), 0o600))
	p = program(t.TempDir(), "true")
	p.State, p.Keep = "other", true
	_, err = run(t, c, box, p)
	require.ErrorContains(t, err, "the files of the container cannot be kept for later programs: docker commit: exit status 1: no space left")
	p.Keep = false
	_, err = run(t, c, box, p)
	require.ErrorContains(t, err, "no space left", "no verifier may judge without the files of the agent")
}
