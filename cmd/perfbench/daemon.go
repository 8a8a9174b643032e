package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A daemon is a `waza jsonrpc` with a state directory of its own. It must be closed.
type daemon struct {
	cmd    *exec.Cmd
	state  string
	stderr bytes.Buffer
	// client is the client of its stdin and stdout, nil if the daemon listens.
	*client
	socket string // on which it listens
	// counter asks the program of the measure of allocations for its counts.
	counter *counter
}

// daemon starts waza as a daemon on stdin and stdout.
func (b *bench) daemon(ctx context.Context) (*daemon, error) {
	return b.start(ctx, nil, b.program, "jsonrpc")
}

// start starts a program as a daemon on stdin and stdout. The counter is nil for programs that do not count.
func (b *bench) start(ctx context.Context, c *counter, program string, args ...string) (*daemon, error) {
	d, err := b.prepare(ctx, program, args...)
	if err != nil {
		return nil, err
	}
	if c != nil {
		d.counter, d.cmd.ExtraFiles = c, c.program
		d.cmd.Env = append(d.cmd.Env, "GOMAXPROCS=2") // some pools have a part for each processor
	}
	in, err := d.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.client = &client{in, bufio.NewReaderSize(out, 1<<20)}
	return d, d.cmd.Start()
}

// listen starts waza as a daemon that listens on a Unix socket.
func (b *bench) listen(ctx context.Context) (*daemon, error) {
	socket := filepath.Join(b.dir, "socket")
	d, err := b.prepare(ctx, b.program, "jsonrpc", "--socket", socket)
	if err != nil {
		return nil, err
	}
	d.socket = socket
	return d, d.cmd.Start()
}

// prepare returns a daemon that has not started. Its environment is small and always the same,
// because waza searches outputs for the keys of its environment.
func (b *bench) prepare(ctx context.Context, program string, args ...string) (*daemon, error) {
	state, err := os.MkdirTemp(b.dir, "state")
	if err != nil {
		return nil, err
	}
	d := &daemon{cmd: exec.CommandContext(ctx, program, args...), state: state}
	d.cmd.Env = b.environment(state)
	d.cmd.Stderr = &d.stderr
	return d, nil
}

// environment returns the environment of measured programs.
func (b *bench) environment(state string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TMPDIR=" + b.dir, "WAZA_STATE=" + state}
}

// dial connects a client to the socket of a daemon once it listens. The client reads so many bytes
// ahead.
func (d *daemon) dial(ahead int) (*client, error) {
	for patience := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", d.socket)
		switch {
		case err == nil:
			return &client{conn, bufio.NewReaderSize(conn, ahead)}, nil
		case time.Now().After(patience):
			return nil, fmt.Errorf("%w\n%s", err, d.stderr.Bytes())
		}
	}
}

// close ends the daemon, removes its state, and returns the processor time that it and its programs
// used.
func (d *daemon) close() (time.Duration, error) {
	defer os.RemoveAll(d.state)
	if d.client != nil {
		_ = d.in.Close()
		if _, err := io.Copy(io.Discard, d.answers); err != nil {
			return 0, err
		}
	} else if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	// A signal that ends a daemon while it closes a run gives the exit code of an interrupt.
	const interrupted = 130
	if err := d.cmd.Wait(); err != nil && (d.client != nil || d.cmd.ProcessState.ExitCode() != interrupted) {
		return 0, fmt.Errorf("the daemon ended with %w\n%s", err, d.stderr.Bytes())
	}
	return d.cmd.ProcessState.UserTime() + d.cmd.ProcessState.SystemTime(), nil
}
