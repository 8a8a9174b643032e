// Package proc runs other programs so that nothing of them is left behind: each
// in a process group of its own, ended with all its descendants when its
// context ends or its main process exits. Call [Run]; keep a program running
// with [Start].
//
// Four nets catch processes that try to get away. The process group catches the
// ordinary child. A control group of each [Scope] catches all of its programs' descendants,
// where Linux has version 2 and a part of its tree is delegated to this process. Two marks catch the one that made a session of its own: a variable
// of the environment ([instanceMark]) and, on Linux, a resource limit without effect,
// which a cleared environment does not clear. Where the system shows them (Linux),
// every process that carries a mark is killed: of a program that is killed at once, and
// of a [Scope] at its end. And a guard process ([UseGuard]) does both when this program
// itself is killed without a chance to clean up.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is a program to run. Args must not be empty.
type Command struct {
	// Args are the program and its arguments. A program without a slash is
	// looked up in the PATH of Env.
	Args []string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Env is the environment; nil means this process's.
	Env []string
	// Stdin is copied to the program; nil means nothing to read. It is not
	// read beyond what the program takes, and never closed.
	Stdin io.Reader
	// Stdout and Stderr take what the program prints; nil discards it. When
	// both are the same writer, it is written to by one goroutine, in the
	// order in which the program prints.
	Stdout, Stderr io.Writer
	// ExtraFiles become file descriptors 3 and up of the program.
	ExtraFiles []*os.File
}

const (
	// drainTime is how long a descendant that escaped may hold the output of a
	// program that has ended before it is killed.
	drainTime = 250 * time.Millisecond
	// lastTime is how long the output is still read after that. It is long
	// because on a busy machine the reader may not have had its turn yet.
	lastTime = 2 * time.Second
	// longestBusy is the longest pause between two tries to start a program
	// whose file is open for writing. All pauses together take twice as long.
	longestBusy = 128 * time.Millisecond
)

var (
	// instanceMark begins the name of every variable that marks a program of
	// this process. The name is unique rather than the value, so that a waza
	// run by a waza keeps the outer mark too.
	instanceMark = fmt.Sprintf("WAZA_MARK_%s_%d_", strconv.FormatInt(time.Now().UnixNano(), 36), os.Getpid())
	started      atomic.Int64
)

// ExitError says that a program ended with a code other than 0 or by a signal.
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

// Process is a running program. Its goroutines copy its input and output and
// end with it; [Process.Wait] waits for them.
type Process struct {
	cmd    *exec.Cmd
	mark   mark
	ctx    context.Context
	exited chan struct{}  // closed when the main process has been reaped
	killer sync.WaitGroup // watch
	done   chan struct{}  // closed when Wait has a result
	err    error          // set before done is closed
}

// Run starts the program, waits for it and ends what it left behind. The error
// is the context's cause when that ended it, an [*ExitError] when it did not
// exit with 0, or what kept it from starting.
func Run(ctx context.Context, c Command) error {
	p, err := Start(ctx, c)
	if err != nil {
		return err
	}
	return p.Wait()
}

// Start starts the program. When ctx ends it is killed with all its
// descendants. The caller must call Wait.
func Start(ctx context.Context, c Command) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	if st, err := os.Stat(c.Dir); c.Dir != "" && (err != nil || !st.IsDir()) {
		return nil, &NoDirError{Program: c.Args[0], Dir: c.Dir}
	}
	path, err := LookPath(c.Args[0], env)
	if err != nil {
		return nil, err
	}
	p := &Process{
		mark:   mark{variable: fmt.Sprintf("%s%d=", instanceMark, started.Add(1))},
		ctx:    ctx,
		exited: make(chan struct{}),
		done:   make(chan struct{}),
	}
	env = append(env[:len(env):len(env)], p.mark.variable+"1")
	var limit limitRange
	var group *cgroup
	if scope := scopeOf(ctx); scope != nil {
		var shared mark
		shared, group = scope.join()
		env, limit = append(env, shared.variable+"1"), shared.limit
	} else {
		limit = newLimit()
		p.mark.limit = limit
	}
	p.cmd = &exec.Cmd{
		Path:        path,
		Args:        c.Args,
		Dir:         c.Dir,
		Env:         env,
		ExtraFiles:  c.ExtraFiles,
		SysProcAttr: groupAttr(),
	}
	pipes, err := connect(p.cmd, c)
	if err != nil {
		return nil, err
	}
	startGuard()
	if p.cmd, err = startProgram(p.cmd, limit, group); err != nil {
		pipes.closeAll()
		return nil, fmt.Errorf("cannot start %s: %w", c.Args[0], unwrapPath(err))
	}
	guardGroup('+', p.cmd.Process.Pid)
	pipes.closeChildEnds()
	p.killer.Go(p.watch)
	go p.wait(pipes)
	return p, nil
}

// startProgram starts a program. One whose file is open for writing cannot be
// started; most often that passes in a moment: the file has just been written by
// this process, and a program that it started at the same time has inherited the
// descriptor and not closed it yet.
func startProgram(cmd *exec.Cmd, limit limitRange, group *cgroup) (*exec.Cmd, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		again := *cmd // as it is before Start
		group.attr(cmd.SysProcAttr)
		err := startWithLimit(limit, cmd.Start)
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

// Pid is the process id of the program, which is also that of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Wait waits until the program and what it started are gone and its output is
// copied. It may be called more than once.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done is closed when Wait would return at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// watch kills the tree when the context ends first.
func (p *Process) watch() {
	select {
	case <-p.ctx.Done():
		killTree(p.Pid(), p.mark)
	case <-p.exited:
	}
}

func (p *Process) wait(pipes *pipes) {
	err := p.cmd.Wait()
	close(p.exited)
	killed := context.Cause(p.ctx)
	if killed != nil {
		killTree(p.Pid(), p.mark)
	} else {
		killGroup(p.Pid())
	}
	p.killer.Wait()
	pipes.drain(p.mark)
	guardGroup('-', p.Pid())
	p.err = killed
	if killed == nil {
		p.err = exitError(err)
	}
	close(p.done)
}

func exitError(err error) error {
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		return err
	}
	if sig := signalName(ee.ProcessState); sig != "" {
		return &ExitError{Code: -1, Signal: sig}
	}
	return &ExitError{Code: ee.ExitCode()}
}

// pipes are the ends of a program's standard streams and who copies them.
type pipes struct {
	child  []*os.File // closed once the program has its own copies
	input  *os.File   // nil when there is nothing to write
	output []*os.File
	copies sync.WaitGroup // goroutines that read output
	feed   sync.WaitGroup // goroutine that writes input
}

// connect gives cmd real files, so that waiting for the process does not wait
// for descendants that hold its output.
func connect(cmd *exec.Cmd, c Command) (*pipes, error) {
	ps := &pipes{}
	if c.Stdin != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		cmd.Stdin = r
		ps.child, ps.input = append(ps.child, r), w
		ps.feed.Go(func() {
			_, _ = io.Copy(w, c.Stdin) // a program need not read all of it
			w.Close()
		})
	}
	attach := func(dst io.Writer) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		ps.child, ps.output = append(ps.child, w), append(ps.output, r)
		ps.copies.Go(func() {
			if _, err := io.Copy(dst, r); err != nil {
				_, _ = io.Copy(io.Discard, r) // keep the program from blocking
			}
		})
		return w, nil
	}
	var err error
	if c.Stdout != nil {
		if cmd.Stdout, err = attachOr(attach, c.Stdout); err != nil {
			ps.closeAll()
			return nil, err
		}
	}
	switch {
	case c.Stderr == nil:
	case same(c.Stdout, c.Stderr):
		cmd.Stderr = cmd.Stdout
	default:
		if cmd.Stderr, err = attachOr(attach, c.Stderr); err != nil {
			ps.closeAll()
			return nil, err
		}
	}
	return ps, nil
}

// same reports whether two writers are one. Those that cannot be compared are not.
func same(a, b io.Writer) bool {
	return a != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// attachOr hands a file to the program as it is and anything else through a pipe.
func attachOr(attach func(io.Writer) (*os.File, error), dst io.Writer) (io.Writer, error) {
	if f, ok := dst.(*os.File); ok {
		return f, nil
	}
	return attach(dst)
}

func (ps *pipes) closeChildEnds() {
	for _, f := range ps.child {
		f.Close()
	}
}

func (ps *pipes) closeAll() {
	ps.closeChildEnds()
	if ps.input != nil {
		ps.input.Close()
	}
	for _, f := range ps.output {
		f.Close()
	}
	ps.copies.Wait()
}

// drain reads what is left of the output of a program that has ended. A
// descendant that holds the other end longer than drainTime has escaped its
// group and is killed.
func (ps *pipes) drain(m mark) {
	if ps.input != nil {
		ps.input.Close()
	}
	done := make(chan struct{})
	go func() {
		ps.copies.Wait()
		close(done)
	}()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		killMarked(m)
	}
	for _, f := range ps.output {
		_ = f.SetReadDeadline(time.Now().Add(lastTime))
	}
	<-done
	for _, f := range ps.output {
		f.Close()
	}
}

// LookPath finds a program in the PATH of env. The error names the program. An
// absolute path is returned as it is, with the error of [Executable]. A relative
// path is returned unseen, because it depends on the directory of the program.
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
		if st, err := os.Stat(file); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", &NotFoundError{Name: name}
}

// Executable returns why a file cannot be started as a program, or nil. The error
// names the file. It is a [*NotFoundError] when there is none.
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

// NoDirError says that the working directory of a program does not exist.
type NoDirError struct{ Program, Dir string }

func (e *NoDirError) Error() string {
	return fmt.Sprintf("cannot start %s: no such working directory: %s", e.Program, e.Dir)
}

// NotFoundError says that a program does not exist: a path, or a name on PATH.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string {
	if strings.ContainsRune(e.Name, os.PathSeparator) {
		return e.Name + ": no such program"
	}
	return e.Name + ": not found on PATH"
}

func unwrapPath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Started is how many programs this process has tried to start so far.
func Started() int64 { return started.Load() }

// Sweep kills every process that carries the given "KEY=value" in the
// environment it was started with, this process aside, and returns how many
// there were. Where environments cannot be read it does nothing.
func Sweep(keyValue string) int { return killMarked(mark{variable: keyValue + "\x00"}) }

// Sweep kills what is left of the program: all that carry its mark. Call it when
// Wait has returned. A program of a [Scope] shares a mark with the others of it, so
// of that only what has kept its environment is found.
func (p *Process) Sweep() int { return killMarked(p.mark) }

// Moment is a point in time as the system dates the start of processes.
type Moment uint64

// EndDetached kills what the program or a descendant has started since a moment and
// left without a parent: processes that outlive what the program started them for. The
// program and the descendants below it keep running. It returns how many there were.
func (p *Process) EndDetached(since Moment) int {
	m := p.mark
	m.main, m.since = p.Pid(), uint64(since)
	return killMarked(m)
}

// Limited keeps the first Max bytes written to it and counts the rest, so that
// a program which floods cannot exhaust memory. It is not safe for concurrent use
// until the program has ended.
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

// String returns what was kept.
func (l *Limited) String() string { return l.buf.String() }

// Bytes returns what was kept; it is valid until the next Write.
func (l *Limited) Bytes() []byte { return l.buf.Bytes() }
