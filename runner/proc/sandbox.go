package proc

import (
	"errors"
	"os/exec"
	"runtime"
)

// LimitOfLocks is the resource limit that holds the number by which waza recognizes its programs.
// Sandboxes keep programs from changing it.
const LimitOfLocks = 10 // RLIMIT_LOCKS of Linux

// A Sandbox restricts a program and its descendants. At most one of its functions is set. A
// Sandbox can be used for many programs, also concurrently.
type Sandbox struct {
	// Launch starts a program whose descendants the sandbox itself ends, such as in process
	// namespaces. cmd has a Path, and its streams are files or nil. The program gets the number
	// mark as its soft limit of file locks, unless mark is 0.
	Launch func(cmd *exec.Cmd, mark uint64) (Child, error)
	// Wrap changes the command that starts the program.
	Wrap func(cmd *exec.Cmd) error
	// Restrict restricts the calling thread, and so the program that the thread starts next. The
	// thread ends afterwards.
	Restrict func(cmd *exec.Cmd) error
	// Elsewhere means that Launch looks for the programs, because their files are not on this
	// machine. The Path of cmd is then their name.
	Elsewhere bool
}

// seals reports whether the sandbox ends all descendants of its programs.
func (s *Sandbox) seals() bool { return s != nil && s.Launch != nil }

// lookPath returns the path of a program for the sandbox.
func (s *Sandbox) lookPath(name string, env []string) (string, error) {
	if s != nil && s.Elsewhere {
		return name, nil
	}
	return LookPath(name, env)
}

// A Child is a started program.
type Child interface {
	// Pid returns the id of the process, as this process sees it; 0 if it is not visible.
	Pid() int
	// Wait waits until the program has ended and, in a sandbox, all its descendants. It is
	// called once. The error is nil for exit code 0, an [*ExitError], or the reason why the
	// sandbox ended the program.
	Wait() error
	// Kill kills the program and, in a sandbox, all its descendants. It does not wait for their
	// end. It has no effect after the end.
	Kill()
}

// ordinary is a child of this process.
type ordinary struct{ cmd *exec.Cmd }

func (o ordinary) Pid() int { return o.cmd.Process.Pid }

func (o ordinary) Kill() { _ = o.cmd.Process.Kill() }

func (o ordinary) Wait() error {
	err := o.cmd.Wait()
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		return err
	}
	if sig := signalName(ee.ProcessState); sig != "" {
		return &ExitError{Code: -1, Signal: sig}
	}
	return &ExitError{Code: ee.ExitCode()}
}

// startOn starts a program on this thread or, with restrict, on one that is restricted before and
// ends afterwards.
func startOn(cmd *exec.Cmd, restrict func(cmd *exec.Cmd) error) error {
	if restrict == nil {
		return cmd.Start()
	}
	return onLostThread(func() error {
		if err := restrict(cmd); err != nil {
			return err
		}
		return cmd.Start()
	})
}

// onLostThread calls f on a thread that ends afterwards. That is never the first thread of the
// process, which cannot end, and whose restrictions would be those that others see of the process.
func onLostThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if isFirstThread() {
			err := onLostThread(f) // on another one, because this goroutine keeps the first
			runtime.UnlockOSThread()
			done <- err
			return
		}
		done <- f() // the thread is never unlocked, so it ends with the goroutine
	}()
	return <-done
}
