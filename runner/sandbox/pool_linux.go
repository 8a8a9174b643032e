package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/handover"
	"waza/runner/sandbox/internal/proxy"
)

// keptIdle is the number of idle keepers that remain of those that programs used.
const keptIdle = 64

// pool starts keepers and keeps them between programs.
type pool struct {
	isolated bool // keepers have a network of their own; it never changes

	mu     sync.Mutex // guards the fields below
	idle   []*remote
	closed bool
	work   sync.WaitGroup // counts keepers
}

// remote is a keeper, as this process sees it.
type remote struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
	said *bytes.Buffer // its error output
}

// get returns an idle keeper, or a new one.
func (p *pool) get() (*remote, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return r, nil
	}
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("the run has ended")
	}
	p.work.Add(1)
	p.mu.Unlock()
	r, err := startKeeper(p.isolated)
	if err != nil {
		p.work.Done()
	}
	return r, err
}

// put takes back a keeper without a program.
func (p *pool) put(r *remote) {
	p.mu.Lock()
	if !p.closed && len(p.idle) < keptIdle {
		p.idle = append(p.idle, r)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.drop(r)
}

// drop ends a keeper, and with it everything in its sandbox.
func (p *pool) drop(r *remote) {
	r.end()
	p.work.Done()
}

// close ends the idle keepers, and waits for those in use.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, r := range idle {
		r.conn.Close()
	}
	for _, r := range idle {
		p.drop(r)
	}
	p.work.Wait()
}

// startKeeper starts a keeper in its namespaces. The error names the part that this machine
// refuses.
func startKeeper(isolated bool) (*remote, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	r := &remote{said: &bytes.Buffer{}}
	args := []string{"waza", keeperArgument}
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)
	if isolated {
		args = append(args, "isolated")
		flags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Geteuid(), os.Getegid()
	r.cmd = &exec.Cmd{
		Path: ownProgram, Args: args, Dir: "/", Env: []string{"GOMAXPROCS=" + keeperProcessors}, ExtraFiles: []*os.File{theirs}, Stderr: r.said,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags:  flags,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			Setsid:      true,
			AmbientCaps: keeperCapabilities,
		},
	}
	if err := proc.StartApart(r.cmd); err != nil {
		ours.Close()
		return nil, step("user namespaces", unwrapPath(err))
	}
	err = unix.SetsockoptInt(int(ours.Fd()), unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	if err != nil {
		ours.Close()
	} else {
		r.conn, err = handover.ConnOf(ours)
	}
	if err != nil {
		r.end()
		return nil, err
	}
	if _, _, err := r.await(); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// keeperProcessors bounds the threads of a keeper on machines with many processors.
const keeperProcessors = "2"

// keeperCapabilities are what a keeper needs inside of its namespaces: it mounts, takes
// capabilities from programs, kills them and starts the loopback interface. Overlays change
// files with those of the keeper, and the directory in which they prepare them has no permissions.
var keeperCapabilities = []uintptr{
	unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_SYS_PTRACE,
}

func unwrapPath(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// end ends the keeper and waits for it.
func (r *remote) end() {
	if r.conn != nil {
		r.conn.Close()
	}
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// await reads the next reply. It returns the id of the process in whose name it was sent, and its
// files, which the caller closes.
func (r *remote) await() (files []*os.File, pid int, err error) {
	var answer reply
	files, pid, err = handover.Receive(r.conn, &answer)
	switch {
	case err != nil:
		err = fmt.Errorf("the sandbox ended unexpectedly: %w", err)
	case answer.Fault != "":
		err = &refusedError{answer.Fault, syscall.Errno(answer.Errno)}
	default:
		return files, pid, nil
	}
	handover.CloseAll(files)
	return nil, 0, err
}

// A refusedError is a fault that a keeper reported.
type refusedError struct {
	text  string
	errno syscall.Errno
}

func (e *refusedError) Error() string { return e.text }

func (e *refusedError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// program is a program in a sandbox.
type program struct {
	pool   *pool
	remote *remote
	pid    int
	proxy  *proxy.Proxy // closed by Wait; nil without one

	mu    sync.Mutex // guards ended, and sending while it is false
	ended bool
}

// launch starts a program in a sandbox of the pool. It returns the sockets of r.Listen, which the
// caller closes.
func (p *pool) launch(cmd *exec.Cmd, r *startRequest) (_ *program, sockets []*os.File, _ error) {
	files, done, err := streams(cmd)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	keeper, err := p.get()
	if err != nil {
		return nil, nil, err
	}
	if err := handover.Send(keeper.conn, &request{Start: r}, files...); err != nil {
		p.drop(keeper)
		return nil, nil, err
	}
	sockets, pid, err := keeper.await()
	if err != nil {
		if _, ok := errors.AsType[*refusedError](err); ok {
			p.put(keeper) // nothing was started
		} else {
			p.drop(keeper)
		}
		return nil, nil, err
	}
	return &program{pool: p, remote: keeper, pid: pid}, sockets, nil
}

// streams returns the descriptors of a program's files. done closes those that are opened for it.
func streams(cmd *exec.Cmd) (fds []int, done func(), err error) {
	var null *os.File
	done = func() {
		if null != nil {
			null.Close()
		}
	}
	for _, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		f, ok := stream.(*os.File)
		if stream != nil && !ok {
			done()
			return nil, nil, fmt.Errorf("a stream of a program in a sandbox must be a file, not %T", stream)
		}
		if f == nil && null == nil {
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return nil, nil, err
			}
		}
		if f == nil {
			f = null
		}
		fds = append(fds, int(f.Fd()))
	}
	for _, f := range cmd.ExtraFiles {
		fds = append(fds, int(f.Fd()))
	}
	return fds, done, nil
}

func (c *program) Pid() int { return c.pid }

func (c *program) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = c.remote.conn.SetWriteDeadline(time.Now().Add(killTime))
		if handover.Send(c.remote.conn, &request{Kill: true}) != nil {
			_ = c.remote.cmd.Process.Kill() // the kernel ends the rest
		}
		_ = c.remote.conn.SetWriteDeadline(time.Time{})
	}
}

// killTime is how long a keeper can take to read a request.
const killTime = time.Second

// Wait implements [proc.Child].
func (c *program) Wait() error {
	var end reply
	files, _, err := handover.Receive(c.remote.conn, &end)
	if c.proxy != nil {
		c.proxy.Close()
	}
	handover.CloseAll(files)
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if err != nil || !end.Ended {
		c.pool.drop(c.remote)
		return fmt.Errorf("the sandbox ended unexpectedly; its program was killed: %w", err)
	}
	c.pool.put(c.remote)
	switch {
	case end.Exceeded != "":
		return &LimitError{end.Exceeded}
	case end.Status.Signaled():
		return &proc.ExitError{Code: -1, Signal: unix.SignalName(end.Status.Signal())}
	case end.Status.ExitStatus() != 0:
		return &proc.ExitError{Code: end.Status.ExitStatus()}
	}
	return nil
}

// socketPair returns two connected sockets.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "sandbox"), os.NewFile(uintptr(fds[1]), "sandbox"), nil
}
