//go:build unix

package dialogues_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience limits how long a test waits for an expected message before it fails. Machines can be
// busy.
const patience = 3 * time.Minute

// daemon is a real daemon with the connection of one client: on stdio, where both end together,
// or by TCP, where the daemon continues after the connection.
type daemon struct {
	tcp  bool
	env  []string
	addr string // its address
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

func newDaemon(t *testing.T, tcp bool, env ...string) *daemon {
	d := &daemon{tcp: tcp, env: append(os.Environ(), env...)}
	t.Cleanup(d.kill)
	return d
}

// connect makes a new connection, and starts the daemon if it does not run.
func (d *daemon) connect(t *testing.T) {
	t.Helper()
	if d.tcp {
		if d.cmd == nil {
			d.listen(t)
		}
		conn, err := net.Dial("tcp", d.addr)
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		d.in, d.out = conn, bufio.NewReader(conn)
		return
	}
	d.cmd = exec.Command("waza", "jsonrpc")
	d.cmd.Env = d.env
	in, err := d.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := d.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, out.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	require.NoError(t, d.cmd.Start())
	d.in, d.out = in, bufio.NewReader(out)
}

var listensAt = regexp.MustCompile(`address="?([0-9.]+:[0-9]+)`)

func (d *daemon) listen(t *testing.T) {
	t.Helper()
	d.cmd = exec.Command("waza", "jsonrpc", "--tcp", "127.0.0.1:0")
	d.cmd.Env = d.env
	errs, err := d.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, errs.(*os.File).SetReadDeadline(time.Now().Add(patience)))
	require.NoError(t, d.cmd.Start())
	lines := bufio.NewReader(errs)
	text, err := lines.ReadString('\n')
	require.NoError(t, err)
	found := listensAt.FindStringSubmatch(text)
	require.NotNil(t, found, text)
	d.addr = found[1]
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	t.Cleanup(func() {
		d.kill()
		<-drained
	})
}

// breakOff ends the connection without shutdown; on stdio this kills the daemon.
func (d *daemon) breakOff(t *testing.T) {
	t.Helper()
	if d.tcp {
		require.NoError(t, d.in.Close())
		return
	}
	d.kill()
}

func (d *daemon) kill() {
	if d.in != nil {
		d.in.Close()
	}
	if d.cmd != nil && d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	}
}

func (d *daemon) send(t *testing.T, text []byte) {
	t.Helper()
	_, err := d.in.Write(append(text, '\n'))
	require.NoError(t, err)
}

// next returns the daemon's next message.
func (d *daemon) next(t *testing.T) []byte {
	t.Helper()
	text, err := d.out.ReadBytes('\n')
	require.NoError(t, err)
	return text
}
