// Package container runs programs in containers of docker, podman, a program with the same commands,
// or an OCI runtime. [Find] finds that program, the engine. [Open] prepares the containers of a run,
// [Containers.Prepare] pulls or builds an image, and [Containers.Start] starts a program:
//
//	docker run --detach … IMAGE     a container that sleeps, before it is needed
//	docker cp - NAME:/              the files of the program
//	docker exec NAME PROGRAM        the program
//	docker kill NAME                ends everything that it started
//	docker cp NAME:DIR -            the files that it changed
//	docker rm NAME
//
// A container serves one program, so that no trial finds files or processes of an earlier one. It
// is warm, because the next container starts while the present one is in use.
//
// Files are copied, not mounted: a warm container exists before its workspace, files that are copied
// out belong to this user whatever user the container has, and an engine in a virtual machine or on
// another machine needs no shared directory. Directories that are the same for all trials, such as
// config.sandbox.read, are mounted.
//
// A Box that is Connected contains this program, which starts the program there after it has passed its
// listeners to this process, see entrance.go. So a proxy outside serves a container without a network. It
// needs the same kernel on both sides, see [Engine.Connects], and a program that calls [Main].
//
// An OCI runtime, such as crun, has no images and nothing that is warm. It starts in some milliseconds
// on an overlay over a directory.
package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"waza/runner/proc"
)

// RuntimeVariable names the program that runs containers: docker, podman, one with the same commands,
// or an OCI runtime.
const RuntimeVariable = "WAZA_CONTAINER_RUNTIME"

// An Engine is a program that runs containers. It is safe for concurrent use.
type Engine struct {
	path string
	kind kind // engines differ in options and abilities
	// version is the output of the command version: that of the client, and the kernel of docker's
	// daemon or the version of podman's service.
	version string
}

type kind string

const (
	docker kind = "docker"
	podman kind = "podman"
	oci    kind = "oci" // crun, runc or another OCI runtime, which runs root file systems
)

// Times after which a command of an engine is killed.
const (
	commandTime = 2 * time.Minute
	copyTime    = 10 * time.Minute
	buildTime   = time.Hour // also of pulls
)

// maxSaid limits the output of a command of an engine that is kept, in bytes.
const maxSaid = 64 << 10

// Find returns the engine of this machine: that of [RuntimeVariable], else the first of docker,
// podman, crun and runc that works. The error names the missing program and the way to get it.
func Find(ctx context.Context) (*Engine, error) {
	if name := os.Getenv(RuntimeVariable); name != "" {
		e, err := newEngine(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", RuntimeVariable, err)
		}
		return e, nil
	}
	var faults []string
	for _, name := range []string{"docker", "podman", "crun", "runc"} {
		e, err := newEngine(ctx, name)
		if err == nil {
			return e, nil
		}
		faults = append(faults, err.Error())
	}
	return nil, fmt.Errorf("no program runs containers here (%s); install docker or podman and start it, or name a program in %s",
		strings.Join(faults, "; "), RuntimeVariable)
}

// newEngine returns an engine that answers.
func newEngine(ctx context.Context, name string) (*Engine, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed", name)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	e := &Engine{path: path, kind: docker}
	switch {
	case strings.Contains(base, "podman"):
		e.kind = podman
	case strings.Contains(base, "nerdctl"):
		return nil, fmt.Errorf("%s cannot copy archives into containers, which waza needs; use docker or podman", name)
	case strings.Contains(base, "crun"), strings.Contains(base, "runc"), strings.Contains(base, "youki"):
		e.kind = oci
		return e, e.checkRoot()
	}
	format := "{{.Client.Version}} {{with .Server}}{{.KernelVersion}}{{end}}"
	if e.kind == podman {
		format = "{{.Client.Version}} {{with .Server}}{{.Version}}{{end}}"
	}
	if e.version, err = e.output(ctx, commandTime, "version", "--format", format); err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", name, err)
	}
	return e, nil
}

// Connects returns the reason why programs in containers cannot use sockets of this process, which
// needs the same kernel: see [Program]. It is nil if they can.
func (e *Engine) Connects() error {
	if _, err := findSelf(); err != nil {
		return err
	}
	_, server, _ := strings.Cut(e.version, " ")
	switch {
	case e.isService():
		return fmt.Errorf("%s is connected to a service, which can be on another machine", e)
	case e.kind == docker && server != kernel():
		return fmt.Errorf("%s runs containers with another kernel than that of this machine, such as in a virtual machine", e)
	}
	return nil
}

// isService reports whether podman only passes commands to a service.
func (e *Engine) isService() bool {
	_, server, _ := strings.Cut(e.version, " ")
	return e.kind == podman && server != ""
}

// kernel returns the release of the kernel of this machine.
func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease") // empty on systems without
	return strings.TrimSpace(string(text))
}

// OwnLoopback reports whether a container with an open network has a loopback interface of its own.
func (e *Engine) OwnLoopback() bool { return e.kind != oci }

// String returns the name of the engine's program.
func (e *Engine) String() string { return filepath.Base(e.path) }

// output runs a command of the engine and returns its output without space at the ends.
func (e *Engine) output(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	out := &proc.Limited{Max: maxSaid}
	err := e.run(ctx, limit, nil, out, args...)
	return strings.TrimSpace(out.String()), err
}

// run runs a command of the engine. The error contains the end of its error output.
func (e *Engine) run(ctx context.Context, limit time.Duration, stdin io.Reader, stdout io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	said := &tail{max: maxSaid}
	err := proc.Run(ctx, proc.Command{Args: append([]string{e.path}, args...), Dir: "/", Stdin: stdin, Stdout: stdout, Stderr: said})
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*proc.ExitError](err); ok {
		err = errors.New(exit.Error()) // so that nobody takes it for the end of a program in a container
	}
	command := e.String() + " " + args[0]
	if lines := said.lines(20); lines != "" {
		return fmt.Errorf("%s: %w: %s", command, err, lines)
	}
	return fmt.Errorf("%s: %w", command, err)
}

// tail keeps the last bytes that are written to it.
type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// lines returns at most the last n lines, without space at the ends.
func (t *tail) lines(n int) string {
	lines := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// errClosed is the error of a program that is started after [Containers.Close].
var errClosed = errors.New("the run has ended")
