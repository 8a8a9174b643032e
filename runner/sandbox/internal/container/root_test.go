package container_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/container"
	"waza/runner/sandbox/internal/pids"
	"waza/runner/sandbox/sandboxtest"
)

// rootFiles returns a root file system, see [sandboxtest.Root]. Bundles are in a directory of the
// test.
func rootFiles(t *testing.T) string {
	t.Helper()
	dir := sandboxtest.Root(t)
	before := container.SetBundles(t.TempDir())
	t.Cleanup(func() { container.SetBundles(before) })
	return dir
}

// leftBundles returns the bundles that exist.
func leftBundles(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(container.BundlesDir(), "*"))
	require.NoError(t, err)
	return left
}

func TestRoot(t *testing.T) {
	root, dir, read := rootFiles(t), t.TempDir(), t.TempDir()
	c := open(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in"), []byte("in\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(read, "model"), []byte("model\n"), 0o600))
	box := container.Box{Image: container.Image{Name: root}, Isolated: true, Mounts: []container.Mount{{Target: read, Source: read}}}
	sh := func(script string) (string, error) {
		p := program(dir, "sh", "-c", script)
		p.Cmd.Env = append(p.Cmd.Env, "KEY=secret", "HOME=/house/me")
		return run(t, c, box, p)
	}
	out, err := sh(`cat in; echo "$KEY"; cat ` + read + `/model; echo "processes $(ls /proc | grep -c '^[0-9]')" 2>/dev/null
		touch ` + read + `/x 2>/dev/null && echo changed a mount
		mount -t tmpfs none /tmp 2>/dev/null && echo mounted
		mknod /tmp/null c 1 3 2>/dev/null && echo made a device
		touch ~/file /bin/new && echo home
		ls /sys/class/net 2>/dev/null; ls /etc/shadow 2>/dev/null
		rm in; echo out >out; setsid sh -c 'sleep 1000' & exit 3`)
	var exit *proc.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.Code)
	require.Equal(t, "in\nsecret\nmodel\n", strings.Join(strings.SplitAfter(out, "\n")[:3], ""))
	require.Contains(t, out, "home\n")
	for _, line := range []string{"changed a mount", "mounted", "made a device", "shadow"} {
		require.NotContains(t, out, line)
	}
	require.NoFileExists(t, filepath.Join(dir, "in"))
	text, err := os.ReadFile(filepath.Join(dir, "out"))
	require.NoError(t, err)
	require.Equal(t, "out\n", string(text))

	out, err = sh("cat /bin/new ~/file")
	require.Error(t, err, "the next program has a root of its own: %s", out)
	require.NoFileExists(t, filepath.Join(root, "bin", "new"))
	require.Empty(t, leftBundles(t))
	c.Close()
	_, err = sh("true")
	require.ErrorContains(t, err, "the run has ended")
}

func TestRootNetwork(t *testing.T) {
	root := rootFiles(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	c := open(t)
	defer c.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	for _, isolated := range []bool{false, true} {
		_, err := run(t, c, container.Box{Image: container.Image{Name: root}, Isolated: isolated}, program(t.TempDir(), "nc", "127.0.0.1", port))
		require.Equal(t, isolated, err != nil, "isolated %v: %v", isolated, err)
	}
}

// The limits of a root file system are those of each process, and the ids of its processes.
func TestRootLimits(t *testing.T) {
	root := rootFiles(t)
	c := open(t)
	defer c.Close()
	box := container.Box{
		Image:  container.Image{Name: root},
		Limits: container.Limits{Memory: 64 << 20, FileSize: 1 << 20, Files: 77, Processes: 50},
	}
	out, err := run(t, c, box, program(t.TempDir(), "sh", "-c", "cat /proc/self/limits; dd if=/dev/zero of=/big bs=1k count=2000"))
	require.Error(t, err)
	for _, want := range []string{`Max file size +1048576 +1048576 `, `Max data size +67108864 +67108864 `, `Max open files +77 +77 `} {
		require.Regexp(t, want, out)
	}
	out, err = run(t, c, box, program(t.TempDir(), "dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"))
	require.Error(t, err)
	require.Contains(t, out, "out of memory")
	if !pids.OfNamespace() {
		t.Skip("skipped: processes are not limited before Linux 6.14")
	}
	out, err = run(t, c, box, program(t.TempDir(), "sh", "-c", "for i in $(awk 'BEGIN{for(i=0;i<700;i++)print i}'); do sleep 1000 & done; echo started"))
	require.Error(t, err, "the shell ends when it cannot fork")
	require.Contains(t, out, "can't fork")
}

// A killed program leaves neither processes nor mounts, and its workspace as it was.
func TestRootKill(t *testing.T) {
	root, dir := rootFiles(t), t.TempDir()
	c := open(t)
	defer c.Close()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	p := program(dir, "sh", "-c", "echo half >half; setsid sleep 1000 & echo ready; exec sleep 1000")
	p.Cmd.Stdout = w
	child, err := c.Start(container.Box{Image: container.Image{Name: root}}, p)
	require.NoError(t, err)
	w.Close()
	_, err = r.Read(make([]byte, 10))
	require.NoError(t, err)
	child.Kill()
	require.Error(t, child.Wait())
	require.FileExists(t, filepath.Join(dir, "half"))
	_, err = r.Read(make([]byte, 10))
	require.ErrorContains(t, err, "EOF", "no process holds the output")
	require.Empty(t, leftBundles(t))
}

// A run ends the programs of a waza that was killed, and deletes their bundles.
func TestRootAbandoned(t *testing.T) {
	rootFiles(t)
	open(t).Close()
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	left := exec.Command("sleep", "1000")
	require.NoError(t, left.Start())
	dir := filepath.Join(container.BundlesDir(), fmt.Sprintf("waza-%d-1-1-1", ended.Process.Pid))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(left.Process.Pid)+"-"+container.StartTime(left.Process.Pid)), 0o600))
	open(t).Close()
	require.Error(t, left.Wait())
	require.Empty(t, leftBundles(t))
}

func TestRootFaults(t *testing.T) {
	root := rootFiles(t)
	c := open(t)
	defer c.Close()
	for image, want := range map[container.Image]string{
		{Name: "debian"}:              "crun needs an image that is the absolute path of a directory with a root file system, got debian; use docker or podman",
		{Dockerfile: "/d/Dockerfile"}: "crun cannot build /d/Dockerfile; use docker or podman",
		{Name: root + "/none"}:        "the image " + root + "/none: no such file or directory",
		{Name: root + "/bin/busybox"}: "the image " + root + "/bin/busybox is not a directory",
	} {
		require.EqualError(t, c.Prepare(t.Context(), image), want)
	}
	out, err := run(t, c, container.Box{Image: container.Image{Name: root}}, program(t.TempDir(), "no-such-program"))
	require.Error(t, err)
	require.Contains(t, out, "no-such-program")
}

// Listeners of a network without another interface are served outside, and sockets of this process are
// connected.
func TestRootConnected(t *testing.T) {
	root := rootFiles(t)
	c := open(t)
	defer c.Close()
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("waza-test-%d", os.Getpid()))
	outside, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer outside.Close()
	go answer(outside, "by socket")
	own, err := container.Self(connectArgument, container.SocketInside(socket))
	require.NoError(t, err)
	p := program(t.TempDir(), append([]string{"sh", "-c", `nc 127.0.0.1 7 </dev/null; "$@"; cat /etc/resolv.conf; ls /.waza/run; id -u`, "sh"}, own...)...)
	p.Listen, p.Sockets = []string{"tcp:127.0.0.1:7"}, []string{socket}
	p.Serve = func(sockets []*os.File) error {
		l, err := net.FileListener(sockets[0])
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		go answer(l, "by network")
		return nil
	}
	out, err := run(t, c, container.Box{Image: container.Image{Name: root}, Isolated: true, Connected: true, Proxied: true}, p)
	require.NoError(t, err, out)
	require.Equal(t, "by network\nby socket\nnameserver 127.0.0.1\noptions edns0\n"+filepath.Base(container.SocketInside(socket))+"\n0\n", out)
	c.Close()
	require.Empty(t, leftBundles(t))
	require.Empty(t, leftEntrances(t))
}

// A program on a root file system gets files besides its streams.
func TestRootDescriptors(t *testing.T) {
	root := rootFiles(t)
	c := open(t)
	defer c.Close()
	out, written, known := reports(t, c, root)
	require.Empty(t, out)
	require.Equal(t, "event\n", written)
	require.True(t, known)
}

// answer sends a line to each connection of a listener, until it is closed.
func answer(l net.Listener, text string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(conn, text)
		conn.Close()
	}
}

// A program answers while its input is open, as agents do that speak over standard streams.
func TestRootStreams(t *testing.T) {
	root := rootFiles(t)
	c := open(t)
	defer c.Close()
	talk(t, c, container.Box{Image: container.Image{Name: root}})
}

// talk has a conversation with a program, and ends it by closing its input.
func talk(t *testing.T, c *container.Containers, box container.Box) {
	t.Helper()
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	answers, output, err := os.Pipe()
	require.NoError(t, err)
	defer answers.Close()
	p := program(t.TempDir(), "sh", "-c", `while read line; do echo "got $line"; done; echo end`)
	p.Cmd.Stdin, p.Cmd.Stdout = theirs, output
	child, err := c.Start(box, p)
	theirs.Close()
	output.Close()
	require.NoError(t, err)
	lines := bufio.NewScanner(answers)
	for _, word := range []string{"one", "two"} {
		_, err := fmt.Fprintln(ours, word)
		require.NoError(t, err)
		require.True(t, lines.Scan())
		require.Equal(t, "got "+word, lines.Text())
	}
	require.NoError(t, ours.Close())
	require.True(t, lines.Scan())
	require.Equal(t, "end", lines.Text())
	require.NoError(t, child.Wait())
}
