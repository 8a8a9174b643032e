package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// engine installs a stand-in for docker, see internal/container/testdata/engine. It returns the
// directory of its state. The tests cannot be parallel, because variables of this process lead to it.
func engine(t *testing.T) string {
	t.Helper()
	script, err := filepath.Abs("internal/container/testdata/engine")
	require.NoError(t, err)
	bin, state := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(script, filepath.Join(bin, "docker")))
	t.Setenv("STANDIN", state)
	t.Setenv("WAZA_CONTAINER_RUNTIME", filepath.Join(bin, "docker"))
	return state
}

// settings returns those of a suite with the mode container and more keys.
func settings(t *testing.T, more string) surroundings.Sandbox {
	t.Helper()
	var s surroundings.Sandbox
	s.SetDefaults()
	require.NoError(t, s.Override("{mode: container, image: debian, "+more+"}"))
	return s
}

// asks returns the policy of settings.
func asks(t *testing.T, more string) sandbox.Policy {
	t.Helper()
	s := settings(t, more)
	p, err := sandbox.PolicyOf(&s, "/suite")
	require.NoError(t, err)
	return p
}

func TestContainer(t *testing.T) {
	state := engine(t)
	tier, err := sandbox.Choose(surroundings.SandboxContainer)
	require.NoError(t, err)
	require.Equal(t, record.TierContainer, tier)

	read, home, dir, copied := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	t.Setenv("HOME", home)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in"), []byte("content"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(copied, "kept"), []byte("kept"), 0o600))
	s, err := sandbox.Open(tier, asks(t, "home: shared, read: ["+read+", /does/not/exist], limits: {memory: 1GiB, processes: 9, disk: 1MiB, files: 99}"))
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Prepare(t.Context(), surroundings.SandboxImage{}))
	require.NoError(t, s.Prepare(t.Context(), surroundings.SandboxImage{Image: "own"}))
	calls, err := os.ReadFile(filepath.Join(state, "calls"))
	require.NoError(t, err)
	require.Contains(t, string(calls), "|own\n", "the image of a task is ready before its clocks start")
	v := sandbox.View{Env: os.Environ(), Write: []string{dir}, Copy: []string{copied}, Isolated: true}
	relative, err := filepath.Rel(dir, copied) // the stand-in has no root of its own
	require.NoError(t, err)
	out, err := run(t, s, v, dir, "sh", "-c", "cat in; echo changed >in; echo x >"+filepath.Join(relative, "kept"))
	require.NoError(t, err)
	require.Equal(t, "content", out)
	text, err := os.ReadFile(filepath.Join(dir, "in"))
	require.NoError(t, err)
	require.Equal(t, "changed\n", string(text))
	text, err = os.ReadFile(filepath.Join(copied, "kept"))
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))

	called, err := os.ReadFile(filepath.Join(state, "calls"))
	require.NoError(t, err)
	for _, want := range []string{
		"|--network=none|", "|--memory=1073741824|", "|--pids-limit=9|", "|--ulimit=fsize=1048576:1048576|", "|--ulimit=nofile=99:99|",
		"|--mount=type=bind,source=" + home + ",target=" + home + ",readonly|", "|--mount=type=volume,target=" + home + "/.ssh|",
		"|--mount=type=bind,source=" + read + ",target=" + read + ",readonly|",
	} {
		require.Contains(t, string(called), want)
	}
	require.NotContains(t, string(called), "/does/not/exist")

	// A task has an image of its own.
	v.Task.SandboxImage = surroundings.SandboxImage{Dockerfile: "image/Dockerfile"}
	_, err = run(t, s, v, dir, "true")
	require.NoError(t, err)
	called, err = os.ReadFile(filepath.Join(state, "calls"))
	require.NoError(t, err)
	require.Contains(t, string(called), "|--file|/suite/image/Dockerfile|/suite/image\n")
}

// Keys that a container cannot keep are refused, never ignored.
func TestContainerRefuses(t *testing.T) {
	state := engine(t)
	require.NoError(t, os.WriteFile(filepath.Join(state, "kernel"), []byte("6.1.0-of-a-virtual-machine\n"), 0o600))
	for more, want := range map[string]string{
		"network: [example.com]": "config.sandbox.network: containers reach hosts by name through a proxy of waza, which they cannot reach here: " +
			"docker runs containers with another kernel than that of this machine, such as in a virtual machine; choose open or none",
		"keys: proxy": "config.sandbox.keys: the proxy of waza adds keys, which they cannot reach here: docker runs containers with another kernel",
	} {
		_, err := sandbox.Open(record.TierContainer, asks(t, more))
		require.ErrorContains(t, err, want)
		_, err = sandbox.Of(settings(t, more))
		require.ErrorContains(t, err, want)
	}
	found, err := sandbox.Of(settings(t, "network: none"))
	require.NoError(t, err)
	require.Equal(t, "container, image debian, network none, 1024 processes, 10 GiB disk; "+
		"the disk is limited by file and by copied directory only; memory is not limited", found.String())
	require.Contains(t, sandbox.Offered(), record.TierContainer)
	s, err := sandbox.Open(record.TierContainer, asks(t, "network: open"))
	require.NoError(t, err)
	defer s.Close()
	_, err = run(t, s, sandbox.View{Env: os.Environ(), Reach: []string{"127.0.0.1:80"}}, "/", "true")
	require.ErrorContains(t, err, "does not reach an MCP server of this machine: docker runs containers with another kernel")

	require.NoError(t, os.WriteFile(filepath.Join(state, "fails-pull"), []byte("denied\n"), 0o600))
	require.ErrorContains(t, s.Prepare(t.Context(), surroundings.SandboxImage{}), "config.sandbox: the image debian cannot be pulled: docker pull: exit status 1: denied")

	t.Setenv("WAZA_CONTAINER_RUNTIME", "no-such-engine")
	_, err = sandbox.Choose(surroundings.SandboxContainer)
	require.EqualError(t, err, "config.sandbox: this machine cannot run programs in the mode container: WAZA_CONTAINER_RUNTIME: no-such-engine is not installed")
	called, err := os.ReadFile(filepath.Join(state, "calls"))
	require.NoError(t, err)
	require.Zero(t, strings.Count(string(called), "|run|"))
}
