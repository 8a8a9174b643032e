// Package proc runs other programs and leaves no process of them behind. Each program has its
// own process group. It is killed with all its descendants when its context ends or its main
// process exits. Call [Run]; keep a program running with [Start].
//
// Four mechanisms catch processes that try to escape. The process group catches ordinary
// children. The control group of each [Scope] catches all descendants of its programs, where
// Linux has version 2 and delegates a part of the tree to this process. Two marks catch
// processes that create a new session: an environment variable ([instanceMark]) and, on Linux, a
// resource limit without effect, which survives a cleared environment.
//
// On Linux, where marks are visible, every marked process is killed: those of a program that is
// killed, and those of a [Scope] at its end. A guard process ([UseGuard]) does the same when
// this program itself is killed without a chance to clean up.
package proc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Command is a program to run. Args must not be empty.
type Command struct {
	// Args are the program and its arguments. A program without a slash is searched for in the
	// PATH of Env, or where the sandbox finds programs.
	Args []string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Env is the environment; nil means this process's.
	Env []string
	// Stdin is copied to the program; nil means empty input. It is not read beyond what the
	// program accepts, and never closed.
	Stdin io.Reader
	// Stdout and Stderr receive the output of the program; nil discards it. If both are the same
	// writer, one goroutine writes to it, in the order of the output.
	Stdout, Stderr io.Writer
	// ExtraFiles become file descriptors 3 and up of the program.
	ExtraFiles []*os.File
	// OutputVariable is the name of a variable of the program that identifies its standard output,
	// see [OutputID]. Empty means none.
	OutputVariable string
	// Sandbox restricts the program and its descendants. Nil means no restriction.
	Sandbox *Sandbox
}

const (
	// drainTime is how long an escaped descendant may hold the output of an ended program before
	// the descendant is killed.
	drainTime = 250 * time.Millisecond
	// lastTime is how long the output is still read after that. It is long because on a busy
	// machine the reader may not have been scheduled yet.
	lastTime = 2 * time.Second
	// longestBusy is the longest pause between two attempts to start a program whose file is
	// open for writing. All pauses together take twice as long.
	longestBusy = 128 * time.Millisecond
)

var (
	// instanceMark is the name prefix of every variable that marks a program of this process.
	// The name, not the value, is unique, so that a waza started by another waza keeps the outer
	// mark.
	instanceMark = fmt.Sprintf("WAZA_MARK_%s_%d_", strconv.FormatInt(time.Now().UnixNano(), 36), os.Getpid())
	started      atomic.Int64
)

// An ExitError reports that a program ended with an exit code other than 0 or by a signal.
type ExitError struct {
	Code   int    // -1 when a signal ended the program
	Signal string // empty when it exited
}

func (e *ExitError) Error() string {
	if e.Signal != "" {
		return "ended by signal " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// A Process is a running program. Its goroutines copy its input and output and end with it;
// [Process.Wait] waits for them.
type Process struct {
	child  Child
	sealed bool // the sandbox itself ends all descendants
	mark   mark
	ctx    context.Context
	alone  func() bool    // keeps the end of ctx from killing the process; false when it does already
	killer sync.WaitGroup // waits for that
	done   chan struct{}  // closed when Wait has a result
	err    error          // set before done is closed
}

// Run starts the program, waits for it and kills the processes that it left behind. The error is
// the cause of ctx when ctx ended the program, an [*ExitError] when the exit code is not 0, or
// the reason why the program did not start.
func Run(ctx context.Context, c Command) error {
	p, err := Start(ctx, c)
	if err != nil {
		return err
	}
	return p.Wait()
}

// Start starts the program. When ctx ends, the program is killed with all its descendants. The
// caller must call Wait.
func Start(ctx context.Context, c Command) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	path, err := c.Sandbox.lookPath(c.Args[0], env)
	if err != nil {
		return nil, cmp.Or(c.checkDir(), err)
	}
	p := &Process{
		mark: mark{variable: instanceMark + strconv.FormatInt(started.Add(1), 10) + "=", since: Now()},
		ctx:  ctx,
		done: make(chan struct{}),
	}
	env = append(env[:len(env):len(env)], p.mark.variable+"1")
	var limit limitRange
	var group *cgroup
	if scope := scopeOf(ctx); scope != nil && !c.Sandbox.seals() {
		var shared mark
		shared, group = scope.join()
		env, limit = append(env, shared.variable+"1"), shared.limit
	} else {
		limit = newLimit()
		p.mark.limit = limit
	}
	cmd := &exec.Cmd{
		Path:        path,
		Args:        c.Args,
		Dir:         c.Dir,
		Env:         env,
		ExtraFiles:  c.ExtraFiles,
		SysProcAttr: groupAttr(),
	}
	pipes, err := connect(cmd, c)
	if err != nil {
		return nil, err
	}
	if f, ok := cmd.Stdout.(*os.File); ok && c.OutputVariable != "" {
		cmd.Env = append(cmd.Env, c.OutputVariable+"="+OutputID(f))
	}
	startGuard()
	if p.child, err = start(cmd, c.Sandbox, limit, group); err != nil {
		pipes.closeAll()
		return nil, cmp.Or(c.checkDir(), fmt.Errorf("cannot start %s: %w", c.Args[0], unwrapPath(err)))
	}
	p.sealed = c.Sandbox.seals()
	if !p.sealed {
		p.mark.since.confirmIDs(p.Pid())
		guardGroup('+', p.Pid())
	}
	pipes.closeChildEnds()
	p.killer.Add(1)
	p.alone = context.AfterFunc(ctx, func() {
		defer p.killer.Done()
		p.kill()
	})
	go p.wait(pipes)
	return p, nil
}

// start starts a program, in a sandbox if there is one.
func start(cmd *exec.Cmd, s *Sandbox, limit limitRange, group *cgroup) (Child, error) {
	if s.seals() {
		return s.Launch(cmd, limit.number(true))
	}
	var restrict func(*exec.Cmd) error
	if s != nil && s.Wrap != nil {
		if err := s.Wrap(cmd); err != nil {
			return nil, err
		}
	}
	if s != nil && s.Restrict != nil {
		restrict, group = s.Restrict, nil // programs join groups by a system call that the restriction can deny
	}
	started, err := startProgram(cmd, restrict, limit.number(s != nil), group)
	return ordinary{started}, err
}

// startProgram starts a program. A program whose file is open for writing cannot be started.
// This is usually temporary: this process has just written the file, and a program that it
// started at the same time has inherited the descriptor and not closed it yet.
func startProgram(cmd *exec.Cmd, restrict func(*exec.Cmd) error, number uint64, group *cgroup) (*exec.Cmd, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		again := *cmd // the state before Start
		group.attr(cmd.SysProcAttr)
		err := startNumbered(number, func() error { return startOn(cmd, restrict) })
		if group.refused(err) {
			cmd, group = &again, nil
			cmd.SysProcAttr = groupAttr()
			continue
		}
		if !errors.Is(err, syscall.ETXTBSY) || pause > longestBusy {
			return cmd, err
		}
		time.Sleep(pause)
		cmd = &again
	}
}

// Pid returns the process id of the program, which is also the id of its process group.
func (p *Process) Pid() int { return p.child.Pid() }

// kill kills the program and its descendants.
func (p *Process) kill() {
	if p.sealed {
		p.child.Kill()
		return
	}
	killTree(p.Pid(), p.mark)
}

// Wait waits until the program and its descendants have ended and its output is copied. It may
// be called more than once.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done returns a channel that is closed when Wait would return at once.
func (p *Process) Done() <-chan struct{} { return p.done }

func (p *Process) wait(pipes *pipes) {
	err := p.child.Wait()
	if p.alone() {
		p.killer.Done()
	}
	killed := context.Cause(p.ctx)
	switch {
	case p.sealed: // no process is left
	case killed != nil:
		killTree(p.Pid(), p.mark)
	default:
		killGroup(p.Pid())
	}
	p.killer.Wait()
	pipes.drain(p.mark)
	if !p.sealed {
		guardGroup('-', p.Pid())
	}
	var lost *LostError
	switch {
	case killed == nil:
		p.err = err
	case errors.As(err, &lost):
		p.err = fmt.Errorf("%w; %w", killed, lost)
	default:
		p.err = killed
	}
	close(p.done)
}

// A LostError means that the files of a program that has ended, or was killed, are lost.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// checkDir returns the reason why the working directory does not exist; nil if it does.
func (c *Command) checkDir() error {
	if st, err := os.Stat(c.Dir); c.Dir != "" && (err != nil || !st.IsDir()) {
		return &NoDirError{Program: c.Args[0], Dir: c.Dir}
	}
	return nil
}

// LookPath finds a program in the PATH of env. The error names the program. An absolute path is
// returned unchanged, with the error of [Executable]. A relative path is returned unchecked,
// because it depends on the program's directory.
func LookPath(name string, env []string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		return name, Executable(name)
	case strings.ContainsRune(name, os.PathSeparator):
		return name, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for dir := range strings.SplitSeq(path, string(os.PathListSeparator)) {
		if dir == "" {
			continue
		}
		file := dir + string(os.PathSeparator) + name
		if isProgram(file) {
			return file, nil
		}
	}
	return "", &NotFoundError{Name: name}
}

// Executable returns the reason why a file cannot be started as a program, or nil. The error
// names the file. It is a [*NotFoundError] when the file does not exist.
func Executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotFoundError{Name: path}
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory, not a program", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x it, or name its interpreter as the command", path)
	}
	return nil
}

// A NoDirError reports that the working directory of a program does not exist.
type NoDirError struct{ Program, Dir string }

func (e *NoDirError) Error() string {
	return fmt.Sprintf("cannot start %s: no such working directory: %s", e.Program, e.Dir)
}

// A NotFoundError reports that a program does not exist: a path, or a name on PATH.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string {
	if strings.ContainsRune(e.Name, os.PathSeparator) {
		return e.Name + ": no such program"
	}
	return e.Name + ": not found on PATH"
}

func unwrapPath(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Started returns the number of programs that this process has tried to start so far.
func Started() int64 { return started.Load() }

// Sweep kills every process whose initial environment contains the given "KEY=value" but no
// variable with the name sparing, except this process. It returns their number. Where environments
// cannot be read it does nothing.
func Sweep(keyValue, sparing string) int {
	return mark{variable: keyValue + "\x00", sparing: sparing + "="}.kill()
}

// Sweep kills the remaining processes of the program: all that carry its mark. Call it when Wait
// has returned. Programs of one [Scope] share the limit, so for them Sweep finds only processes
// that kept their environment.
func (p *Process) Sweep() int { return p.mark.kill() }

// EndDetached kills processes that the program or a descendant has started since a moment and
// that lost their parent: they outlive their purpose. The program and the descendants below it
// keep running. EndDetached returns the number of killed processes.
func (p *Process) EndDetached(since Moment) int {
	m := p.mark
	m.main, m.since = p.Pid(), since
	return m.kill()
}

// Limited keeps the first Max bytes written to it and counts the rest, so that excessive output
// cannot exhaust memory. It is not safe for concurrent use until the program has ended.
type Limited struct {
	Max     int
	Dropped int64
	buf     bytes.Buffer
}

func (l *Limited) Write(b []byte) (int, error) {
	keep := min(len(b), max(0, l.Max-l.buf.Len()))
	l.buf.Write(b[:keep])
	l.Dropped += int64(len(b) - keep)
	return len(b), nil
}

// String returns the kept bytes as a string.
func (l *Limited) String() string { return l.buf.String() }

// Bytes returns the kept bytes. They are valid until the next Write.
func (l *Limited) Bytes() []byte { return l.buf.Bytes() }
