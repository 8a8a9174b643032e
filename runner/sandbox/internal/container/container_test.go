package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/container"
)

var update = flag.Bool("update", false, "write the expected calls")

// standIn installs the stand-in for an engine under a name. It returns the directory of its state. The
// tests cannot be parallel, because the variables of this process lead to it.
func standIn(t *testing.T, name string) string {
	t.Helper()
	script, err := filepath.Abs("testdata/engine")
	require.NoError(t, err)
	bin, state := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(script, filepath.Join(bin, name)))
	t.Setenv("STANDIN", state)
	t.Setenv(container.RuntimeVariable, "")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", filepath.Join(state, "home"))
	return state
}

// open returns the containers of a run with the stand-in.
func open(t *testing.T) *container.Containers {
	t.Helper()
	engine, err := container.Find(t.Context())
	require.NoError(t, err)
	c, err := engine.Open(t.Context())
	require.NoError(t, err)
	return c
}

// program returns a program with a workspace.
func program(dir string, args ...string) container.Program {
	return container.Program{
		Cmd: &exec.Cmd{Args: args, Dir: dir, Env: os.Environ()},
		In:  []string{dir}, Out: []string{dir},
	}
}

// run runs a program, and returns its output.
func run(t *testing.T, c *container.Containers, box container.Box, p container.Program) (string, error) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	p.Cmd.Stdout, p.Cmd.Stderr = out, out
	child, err := c.Start(box, p)
	if err != nil {
		return "", err
	}
	err = child.Wait()
	text, readErr := os.ReadFile(out.Name())
	require.NoError(t, readErr)
	return string(text), err
}

// calls returns the calls of the stand-in, without what differs between runs.
func calls(t *testing.T, state string, names ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state, "calls"))
	require.NoError(t, err)
	s := string(text)
	for i := 0; i < len(names); i += 2 {
		s = strings.ReplaceAll(s, names[i], names[i+1])
	}
	s = regexp.MustCompile(`waza-\d+-\d+-\d+-`).ReplaceAllString(s, "waza-RUN-")
	s = regexp.MustCompile(`waza\.run=[\d-]+`).ReplaceAllString(s, "waza.run=RUN")
	s = regexp.MustCompile(`waza\.owner=\w+`).ReplaceAllString(s, "waza.owner=OWNER")
	s = regexp.MustCompile(`(\|--env\|\w+(=tcp://inside)?)+`).ReplaceAllString(s, "|--env|…")
	s = regexp.MustCompile(`source=[^|]*/waza-containers-[\d-]+/`).ReplaceAllString(s, "source=ENTRANCES/")
	s = regexp.MustCompile(`(\|--mount=type=bind,source=[^|]*,target=/\.waza/(waza|lib/[^|]*),readonly)+`).ReplaceAllString(s, "|WAZA")
	s = regexp.MustCompile(`(/\.waza/lib/loader\|--library-path\|/\.waza/lib\|)?/\.waza/waza\|`).ReplaceAllString(s, "/.waza/waza|")
	s = regexp.MustCompile(`(\|--ulimit=nofile=\d+:\d+)?\|--ulimit=nproc=\d+:\d+`).ReplaceAllString(s, "|LIMITS")
	s = regexp.MustCompile(`waza-built:\w+`).ReplaceAllString(s, "waza-built:HASH")
	return s
}

// golden compares the calls with those of a file. The calls for a spare container can happen at any
// time, so that each container has lines of its own.
func golden(t *testing.T, name, got string) {
	t.Helper()
	var general, first, spare []string
	for line := range strings.Lines(got) {
		switch {
		case strings.Contains(line, "waza-RUN-2"):
			spare = append(spare, line)
		case strings.Contains(line, "waza-RUN-1"):
			first = append(first, line)
		default:
			general = append(general, line)
		}
	}
	got = "-- run --\n" + strings.Join(general, "") + "-- container --\n" + strings.Join(first, "") + "-- spare --\n" + strings.Join(spare, "")
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestCalls(t *testing.T) {
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			state, dir := standIn(t, engine), t.TempDir()
			if engine == "podman" {
				t.Setenv(container.RuntimeVariable, "podman") // a docker can exist
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "in.txt"), []byte("in\n"), 0o600))
			c := open(t)
			p := program(dir, "sh", "-c", `cat in.txt; rm in.txt; echo out >out.txt; mkdir -p a/b; ln -s ../out.txt a/link; echo "$KEY"; exit 3`)
			p.Cmd.Env = append(p.Cmd.Env, "KEY=secret", "PATH="+os.Getenv("PATH")+":/more", "DOCKER_HOST=tcp://inside", "WAZA_EVENTS_FD=3")
			in, err := os.Open(os.DevNull)
			require.NoError(t, err)
			defer in.Close()
			p.Cmd.Stdin = in
			out, err := run(t, c, container.Box{
				Image: container.Image{Name: "debian:12"}, Isolated: true,
				Mounts: []container.Mount{{Target: "/opt/a,b", Source: "/opt/a,b"}, {Target: "/opt/w", Source: "/opt/w", Writable: true}, {Target: "/opt/w/hidden"}},
				Limits: container.Limits{Memory: 1 << 30, Processes: 100, FileSize: 1 << 20, Files: 64},
			}, p)
			var exit *proc.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 3, exit.Code)
			require.Equal(t, "in\nsecret\n", out)
			c.Close()

			require.NoFileExists(t, filepath.Join(dir, "in.txt"))
			text, err := os.ReadFile(filepath.Join(dir, "a", "link"))
			require.NoError(t, err)
			require.Equal(t, "out\n", string(text))
			got := calls(t, state, dir, "DIR")
			require.NotContains(t, got, "secret")
			golden(t, engine, got)
			left, err := filepath.Glob(filepath.Join(state, "waza-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// A program in a connected container starts when this process serves the listeners that it opened.
func TestConnected(t *testing.T) {
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			state, dir := standIn(t, engine), t.TempDir()
			t.Setenv(container.RuntimeVariable, engine)
			c := open(t)
			require.NoError(t, c.Engine().Connects())
			box := container.Box{Image: container.Image{Name: "debian:12"}, Isolated: true, Connected: true, Proxied: true}
			p := program(dir, "sh", "-c", "echo $#", "sh", "a b")
			p.Listen = []string{"tcp:127.0.0.1:0", "udp:127.0.0.1:0"}
			p.Serve = func(sockets []*os.File) error {
				require.Len(t, sockets, 2)
				l, err := net.FileListener(sockets[0])
				require.NoError(t, err)
				require.NoError(t, l.Close())
				_, err = net.FilePacketConn(sockets[1])
				return err
			}
			out, err := run(t, c, box, p)
			require.NoError(t, err)
			require.Equal(t, "1\n", out)
			c.Close()
			golden(t, engine+"-connected", calls(t, state, dir, "DIR"))
			require.Empty(t, leftEntrances(t))
		})
	}
}

// leftEntrances returns the directories of entrances of this process that exist.
func leftEntrances(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf("waza-containers-%d-*", os.Getpid())))
	require.NoError(t, err)
	return left
}

// A program whose listeners are not served does not start, and the reason is reported.
func TestConnectedFaults(t *testing.T) {
	standIn(t, "docker")
	c := open(t)
	defer c.Close()
	box := container.Box{Image: container.Image{Name: "debian:12"}, Connected: true}
	for _, test := range []struct {
		listen string
		serve  error
		want   string
	}{
		{"tcp:127.0.0.1:0", errors.New("no luck"), "the program cannot be started in the container: no luck"},
		{"tcp:192.0.2.1:80", nil, "the program cannot be started in the container: listen tcp4 192.0.2.1:80: bind: cannot assign requested address"},
	} {
		p := program(t.TempDir(), "echo", "started")
		p.Listen, p.Serve = []string{test.listen}, func([]*os.File) error { return test.serve }
		out, err := run(t, c, box, p)
		require.EqualError(t, err, test.want)
		require.NotContains(t, out, "started")
	}
	out, err := run(t, c, box, program(t.TempDir(), "no-such-program"))
	var exit *proc.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 127, exit.Code)
	require.Contains(t, out, `waza: exec: "no-such-program": executable file not found in $PATH`)
}

// reports runs a program that writes to descriptor 3, if it has one. It returns the output of the
// program, what it wrote there, and whether its process is known.
func reports(t *testing.T, c *container.Containers, image string) (out, written string, known bool) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	output, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer output.Close()
	p := program(t.TempDir(), "sh", "-c", `if [ "$WAZA_EVENTS_FD" ]; then echo event >&3; else echo no descriptor; fi`)
	p.Cmd.Env = append(p.Cmd.Env, "WAZA_EVENTS_FD=3")
	p.Cmd.Stdout, p.Cmd.Stderr, p.Cmd.ExtraFiles = output, output, []*os.File{w}
	child, err := c.Start(container.Box{Image: container.Image{Name: image}}, p)
	w.Close()
	require.NoError(t, err)
	known = child.Pid() > 0
	require.NoError(t, child.Wait())
	text, err := os.ReadFile(output.Name())
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text), string(got), known
}

// A program gets files besides its streams.
func TestDescriptors(t *testing.T) {
	standIn(t, "docker")
	c := open(t)
	defer c.Close()
	out, written, known := reports(t, c, "debian:12")
	require.Empty(t, out)
	require.Equal(t, "event\n", written)
	require.True(t, known)
}

// An engine without a connection starts programs without descriptors.
func TestNoDescriptors(t *testing.T) {
	for name, content := range map[string]string{"kernel": "6.10.14-linuxkit\n", "no-mounts": ""} {
		t.Run(name, func(t *testing.T) {
			state := standIn(t, "docker")
			require.NoError(t, os.WriteFile(filepath.Join(state, name), []byte(content), 0o600))
			c := open(t)
			defer c.Close()
			for range 2 {
				out, written, known := reports(t, c, "debian:12")
				require.Equal(t, "no descriptor\n", out)
				require.Empty(t, written)
				require.False(t, known)
			}
		})
	}
}

// Sockets of this process cannot be used from a virtual machine or another machine.
func TestConnects(t *testing.T) {
	state := standIn(t, "docker")
	require.NoError(t, os.WriteFile(filepath.Join(state, "kernel"), []byte("6.10.14-linuxkit\n"), 0o600))
	c := open(t)
	defer c.Close()
	require.EqualError(t, c.Engine().Connects(), "docker runs containers with another kernel than that of this machine, such as in a virtual machine")
}

// The next program gets a container that has started before, and never one that was used.
func TestWarm(t *testing.T) {
	state, dir := standIn(t, "docker"), t.TempDir()
	c := open(t)
	box := container.Box{Image: container.Image{Name: "debian:12"}}
	mark := strings.Repeat("../", strings.Count(dir, "/")) + "mark" // in the root of the container
	for range 3 {
		out, err := run(t, c, box, program(dir, "sh", "-c", "cat "+mark+" 2>/dev/null; echo used >"+mark))
		require.NoError(t, err)
		require.Empty(t, out)
	}
	c.Close()
	got := calls(t, state)
	require.Equal(t, 4, strings.Count(got, "docker|run|"), "one for each program, and a spare")
	require.Equal(t, 1, strings.Count(got, "docker|pull|"))
	for n := range 3 {
		require.Contains(t, got, fmt.Sprintf("|waza-RUN-%d|sh|-c|", n+1))
	}
	_, err := run(t, c, box, program(dir, "true"))
	require.ErrorContains(t, err, "the run has ended")
}

func TestDockerfile(t *testing.T) {
	state, dir := standIn(t, "docker"), t.TempDir()
	c := open(t)
	defer c.Close()
	image := container.Image{Dockerfile: filepath.Join(dir, "Dockerfile")}
	require.NoError(t, c.Prepare(t.Context(), image))
	require.NoError(t, c.Prepare(t.Context(), image))
	_, err := run(t, c, container.Box{Image: image}, program(t.TempDir(), "true"))
	require.NoError(t, err)
	got := calls(t, state, dir, "DIR")
	require.Equal(t, 1, strings.Count(got, "docker|build|"))
	require.Contains(t, got, "docker|build|--quiet|--tag|waza-built:HASH|--file|DIR/Dockerfile|DIR\n")
	require.Contains(t, got, "|sha256:2|2147483647\n")
}

func TestFaults(t *testing.T) {
	for _, test := range []struct{ command, want string }{
		{"pull", "the image debian:12 cannot be pulled: docker pull: exit status 1: no luck"},
		{"run", "the container cannot be started: docker run: exit status 1: no luck"},
		{"cp", "files cannot be copied into the container: docker cp: exit status 1: no luck"},
	} {
		t.Run(test.command, func(t *testing.T) {
			state := standIn(t, "docker")
			c := open(t)
			require.NoError(t, os.WriteFile(filepath.Join(state, "fails-"+test.command), []byte("no luck\n"), 0o600))
			_, err := run(t, c, container.Box{Image: container.Image{Name: "debian:12"}}, program(t.TempDir(), "true"))
			require.EqualError(t, err, test.want)
			_, isEnd := errors.AsType[*proc.ExitError](err)
			require.False(t, isEnd, "a fault of the engine is not the end of the program")
			c.Close()
			left, err := filepath.Glob(filepath.Join(state, "waza-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	t.Run("build", func(t *testing.T) {
		state := standIn(t, "docker")
		c := open(t)
		defer c.Close()
		require.NoError(t, os.WriteFile(filepath.Join(state, "fails-build"), []byte("step 1\nno luck\n"), 0o600))
		err := c.Prepare(t.Context(), container.Image{Dockerfile: "/d/Dockerfile"})
		require.EqualError(t, err, "the image of /d/Dockerfile cannot be built: docker build: exit status 1: step 1\nno luck")
	})
	t.Run("no image", func(t *testing.T) {
		standIn(t, "docker")
		c := open(t)
		defer c.Close()
		_, err := run(t, c, container.Box{}, program(t.TempDir(), "true"))
		require.ErrorContains(t, err, "the task has no image; set config.sandbox.image")
	})
	t.Run("daemon", func(t *testing.T) {
		state := standIn(t, "docker")
		t.Setenv(container.RuntimeVariable, "docker")
		require.NoError(t, os.WriteFile(filepath.Join(state, "fails-version"), []byte("Cannot connect to the Docker daemon.\n"), 0o600))
		_, err := container.Find(t.Context())
		require.EqualError(t, err, "WAZA_CONTAINER_RUNTIME: docker does not answer: docker version: exit status 1: Cannot connect to the Docker daemon.")
	})
	t.Run("no engine", func(t *testing.T) {
		t.Setenv(container.RuntimeVariable, "")
		t.Setenv("PATH", t.TempDir())
		_, err := container.Find(t.Context())
		require.EqualError(t, err, "no program runs containers here (docker is not installed; podman is not installed; crun is not installed; runc is not installed); "+
			"install docker or podman and start it, or name a program in WAZA_CONTAINER_RUNTIME")
	})
	t.Run("nerdctl", func(t *testing.T) {
		standIn(t, "nerdctl")
		t.Setenv(container.RuntimeVariable, "nerdctl")
		_, err := container.Find(t.Context())
		require.ErrorContains(t, err, "nerdctl cannot copy archives into containers")
	})
	t.Run("canceled", func(t *testing.T) {
		standIn(t, "docker")
		c := open(t)
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		image := container.Image{Name: "debian:12"}
		require.ErrorIs(t, c.Prepare(ctx, image), context.Canceled)
		require.NoError(t, c.Prepare(t.Context(), image), "the next caller tries it again")
	})
	t.Run("memory", func(t *testing.T) {
		state := standIn(t, "docker")
		c := open(t)
		defer c.Close()
		require.NoError(t, os.WriteFile(filepath.Join(state, "oom"), nil, 0o600))
		_, err := run(t, c, container.Box{Image: container.Image{Name: "debian:12"}}, program(t.TempDir(), "sh", "-c", "exit 137"))
		require.ErrorIs(t, err, container.ErrMemory)
	})
}

// A killed program leaves its workspace as it was at that moment, and no container.
func TestKill(t *testing.T) {
	state, dir := standIn(t, "docker"), t.TempDir()
	c := open(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	p := program(dir, "sh", "-c", "echo half >half; echo ready; exec sleep 1000")
	p.Cmd.Stdout = w
	child, err := c.Start(container.Box{Image: container.Image{Name: "debian:12"}}, p)
	require.NoError(t, err)
	w.Close()
	_, err = r.Read(make([]byte, 10))
	require.NoError(t, err)
	child.Kill()
	require.Error(t, child.Wait())
	c.Close()
	require.FileExists(t, filepath.Join(dir, "half"))
	require.Contains(t, calls(t, state), "docker|kill|waza-RUN-1\n")
	left, err := filepath.Glob(filepath.Join(state, "waza-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A run removes the containers of processes that do not exist, and of no others.
func TestAbandoned(t *testing.T) {
	state := standIn(t, "docker")
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	list := fmt.Sprintf("waza-%d-1-1-7\nwaza-%d-0-1-1\nwaza-%d-1-1-2\nother-1-2-3-4\nwaza-x\n", ended.Process.Pid, os.Getpid(), os.Getpid())
	require.NoError(t, os.WriteFile(filepath.Join(state, "list"), []byte(list), 0o600))
	t.Setenv("TMPDIR", t.TempDir())
	for _, id := range []string{fmt.Sprintf("%d-1-1", ended.Process.Pid), fmt.Sprintf("%d-0-1", os.Getpid())} {
		require.NoError(t, os.MkdirAll(filepath.Join(os.TempDir(), "waza-containers-"+id+"-1", "1"), 0o700))
	}
	open(t).Close()
	text, err := os.ReadFile(filepath.Join(state, "calls"))
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "waza-containers-*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(os.TempDir(), fmt.Sprintf("waza-containers-%d-0-1-1", os.Getpid()))}, left)
	require.Contains(t, string(text), fmt.Sprintf("docker|rm|--force|--volumes|waza-%d-1-1-7|waza-%d-1-1-2\n", ended.Process.Pid, os.Getpid()))
}

// podman can fail to remove a container whose monitor was killed with waza, but only once.
func TestAbandonedOfPodman(t *testing.T) {
	state := standIn(t, "podman")
	t.Setenv(container.RuntimeVariable, "podman")
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	require.NoError(t, os.WriteFile(filepath.Join(state, "list"), fmt.Appendf(nil, "waza-%d-1-1-7\n", ended.Process.Pid), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(state, "fails-once-rm"), nil, 0o600))
	open(t).Close()
	text, err := os.ReadFile(filepath.Join(state, "calls"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "podman|rm|"))
}

// archive returns an archive with entries.
func archive(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Size = "x", 1
		}
		require.NoError(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestArchivesOfAttackers(t *testing.T) {
	t.Parallel()
	dir := tar.Header{Typeflag: tar.TypeDir, Name: "ws/", Mode: 0o755}
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o7777} }
	for _, test := range []struct {
		name    string
		entries []tar.Header
		limit   int64
		want    string // of the error; empty means none
	}{
		{"parent", []tar.Header{dir, file("ws/../../evil")}, 0, "leads out"},
		{"absolute", []tar.Header{dir, file("/ws/../evil")}, 0, "is a directory"},
		{"link out", []tar.Header{dir, {Typeflag: tar.TypeSymlink, Name: "ws/l", Linkname: "../.."}, file("ws/l/evil")}, 0, "escapes"},
		{"link to a file outside", []tar.Header{dir, {Typeflag: tar.TypeSymlink, Name: "ws/l", Linkname: "../outside"}, file("ws/l")}, 0, "escapes"},
		{"hard link", []tar.Header{dir, {Typeflag: tar.TypeLink, Name: "ws/l", Linkname: "ws/../../outside"}}, 0, "link leads out"},
		{"device", []tar.Header{dir, {Typeflag: tar.TypeChar, Name: "ws/zero", Devmajor: 1, Devminor: 5}}, 0, ""},
		{"size", []tar.Header{dir, file("ws/a"), file("ws/b")}, 1100, "more than 1100 bytes"},
		{"set user ID", []tar.Header{dir, file("ws/a")}, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			outer := t.TempDir()
			ws := filepath.Join(outer, "in", "ws")
			require.NoError(t, os.MkdirAll(ws, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(outer, "in", "outside"), []byte("kept"), 0o600))
			err := container.Replace(ws, bytes.NewReader(archive(t, test.entries...)), test.limit)
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
			}
			kept, err := os.ReadFile(filepath.Join(outer, "in", "outside"))
			require.NoError(t, err)
			require.Equal(t, "kept", string(kept))
			require.NoError(t, filepath.WalkDir(outer, func(path string, d fs.DirEntry, err error) error {
				require.NoError(t, err)
				require.True(t, d.Name() != "evil" || strings.HasPrefix(path, ws), path)
				info, err := d.Info()
				require.NoError(t, err)
				require.Zero(t, info.Mode()&(fs.ModeDevice|fs.ModeSetuid|fs.ModeSetgid), path)
				return nil
			}))
		})
	}
}

func FuzzReplace(f *testing.F) {
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeDir, Name: "ws/", Mode: 0o755}, tar.Header{Typeflag: tar.TypeReg, Name: "ws/a", Mode: 0o644}))
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeSymlink, Name: "ws/l", Linkname: "../.."}, tar.Header{Typeflag: tar.TypeReg, Name: "ws/l/a", Mode: 0o644}))
	f.Fuzz(func(t *testing.T, data []byte) {
		outer := t.TempDir()
		ws := filepath.Join(outer, "ws")
		require.NoError(t, os.Mkdir(ws, 0o700))
		_ = container.Replace(ws, bytes.NewReader(data), 1<<20)
		list, err := os.ReadDir(outer)
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}

func TestStreams(t *testing.T) {
	standIn(t, "docker")
	c := open(t)
	defer c.Close()
	talk(t, c, container.Box{Image: container.Image{Name: "debian:12"}})
}
