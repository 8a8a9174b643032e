package container

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"waza/runner/sandbox/internal/pids"
)

// A Box describes a container.
type Box struct {
	Image    Image
	Isolated bool // without a network
	// Connected containers have an entrance for programs with [Program.Listen] or Sockets.
	Connected bool
	// Self containers contain this program, for commands of [Self]. Connected ones contain it, too.
	Self bool
	// Proxied containers ask themselves for the addresses of names, and let every user listen on
	// every port. They are also Isolated and Connected.
	Proxied bool
	Mounts  []Mount
	Limits  Limits
}

// A Mount is a part of the file system of a container that is not of its image.
type Mount struct {
	// Target is the path in the container. Source is a path of this machine; empty means a new
	// empty directory that is deleted with the container.
	Target, Source string
	Writable       bool
}

// Limits are those of a container. 0 means none.
type Limits struct {
	Memory    int64 // in bytes
	Processes int64 // processes and threads
	FileSize  int64 // in bytes, for each file
	Files     int64 // open files of a process
}

// Kept returns the limits that the engine keeps, and describes what it does not keep for all programs of
// a container together, one sentence each, without a period.
func (e *Engine) Kept(l Limits) (kept Limits, missing []string) {
	if e.kind == oci && l.Memory > 0 {
		missing = append(missing, fmt.Sprintf("%s limits the memory of each process, not of all together", e))
	}
	if e.kind == oci && l.Processes > 0 && !pids.OfNamespace() {
		l.Processes = 0
		missing = append(missing, fmt.Sprintf("%s does not limit processes before Linux 6.14", e))
	}
	if l.FileSize > 0 {
		missing = append(missing, "the disk is limited by file and by copied directory only")
	}
	return l, missing
}

// maxSpares limits the containers of a run that wait for programs.
const maxSpares = 64

// Containers are the containers of one run. It is safe for concurrent use.
type Containers struct {
	engine    *Engine
	id        string
	entrances entrances
	// unconnected means that a program could not connect, see [Containers.Start].
	unconnected atomic.Bool
	abandoned   sync.Once // removes the states of killed processes

	mu      sync.Mutex // guards the fields below
	images  map[Image]*prepared
	states  map[string]*state
	boxes   map[string]*kept // by the options of their containers
	spares  int
	started int
	closed  bool
	work    sync.WaitGroup // counts containers in use, and those that start or are removed
}

// kept are the containers with the same options.
type kept struct {
	inUse  int
	spares []*box
}

// box is one container.
type box struct {
	name     string
	key      string
	state    *state        // nil without one
	keeps    bool          // its files become those of the state
	entrance *entrance     // nil without one
	ready    chan struct{} // closed when it runs, or when err is set
	err      error
}

// Open prepares the containers of a run. It removes those of processes that were killed. The caller
// calls Close when all programs have ended.
func (e *Engine) Open(ctx context.Context) (*Containers, error) {
	abandoned := e.removeAbandoned
	if e.kind == oci {
		abandoned = func(context.Context) error { return removeBundles() }
	}
	if err := errors.Join(abandoned(ctx), removeEntrances()); err != nil {
		return nil, err
	}
	return &Containers{engine: e, id: newRunID(), images: map[Image]*prepared{}, states: map[string]*state{}, boxes: map[string]*kept{}}, nil
}

// Engine returns the engine of the containers.
func (c *Containers) Engine() *Engine { return c.engine }

// Close removes all containers. It does nothing for nil.
func (c *Containers) Close() {
	if c == nil {
		return
	}
	c.forgetAll()
	c.mu.Lock()
	c.closed = true
	var names []string
	for _, k := range c.boxes {
		for _, b := range k.spares {
			names = append(names, b.name)
		}
		k.spares = nil
	}
	c.mu.Unlock()
	c.work.Wait()
	_ = c.engine.remove(names...) // the next run tries it again
	c.entrances.remove()
}

// take returns a container for one program, which the caller passes to release. Containers of a state
// are not warm, because each has a different image.
func (c *Containers) take(of Box, image, state string, keep bool) (*box, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	st, from, err := c.stateLocked(state, keep, image)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	options, err := c.options(of, from)
	if err != nil {
		c.leave(st, keep)
		return nil, err
	}
	key := strings.Join(options, "\x00")
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.leave(st, keep)
		return nil, errClosed
	}
	k := c.boxes[key]
	if k == nil {
		k = &kept{}
		c.boxes[key] = k
	}
	var b *box
	if n := len(k.spares); n > 0 {
		b, k.spares = k.spares[0], k.spares[1:]
		c.spares--
	} else {
		b = c.startLocked(key, options, of.Connected)
	}
	b.state, b.keeps = st, keep
	k.inUse++
	c.work.Add(1)
	if from == image && len(k.spares) < k.inUse && c.spares < maxSpares {
		k.spares = append(k.spares, c.startLocked(key, options, of.Connected))
		c.spares++
	}
	c.mu.Unlock()
	<-b.ready
	if b.err != nil {
		c.release(b)
		return nil, b.err
	}
	return b, nil
}

// startLocked starts a container. c.mu must be held.
func (c *Containers) startLocked(key string, options []string, connected bool) *box {
	c.started++
	b := &box{name: nameOf(c.id, c.started), key: key, ready: make(chan struct{})}
	args := []string{"run", "--detach", "--name", b.name, "--label", runLabel + "=" + c.id, "--label", ownerLabel + "=" + owner()}
	c.work.Go(func() {
		defer close(b.ready)
		if connected {
			if b.entrance, b.err = c.entrances.newEntrance(c.id, b.name); b.err != nil {
				return
			}
			args = append(args, "--mount="+b.entrance.mount().option())
		}
		args := append(args, options...)
		if _, b.err = c.engine.output(context.Background(), commandTime, args...); b.err != nil {
			b.err = fmt.Errorf("the container cannot be started: %w", b.err)
		}
	})
	return b
}

// release removes a container.
func (c *Containers) release(b *box) {
	c.mu.Lock()
	c.boxes[b.key].inUse--
	if b.keeps {
		b.state.kept = false // the next program can start
	}
	c.mu.Unlock()
	go func() {
		defer c.work.Done()
		_ = b.entrance.close()      // Wait has reported its fault
		_ = c.engine.remove(b.name) // the next run tries it again
		c.leave(b.state, false)
	}()
}

// leave ends the use of a state, which can be nil.
func (c *Containers) leave(s *state, keep bool) {
	if s == nil {
		return
	}
	if keep {
		c.mu.Lock()
		s.kept = false
		c.mu.Unlock()
	}
	s.users.Done()
}

// capabilities are those that package managers and programs that change their user need. The root
// user of a container has no others.
var capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"}

// sleepTime is the argument of the program sleep with which a container waits, in seconds. Old
// versions do not know infinity.
const sleepTime = "2147483647"

// options returns the arguments of the command run after its name, its labels and its entrance.
func (c *Containers) options(of Box, image string) ([]string, error) {
	mounts, err := c.mounts(of)
	if err != nil {
		return nil, err
	}
	e := c.engine
	args := []string{"--pull=never", "--security-opt=no-new-privileges", "--cap-drop=ALL"}
	for _, name := range capabilities {
		args = append(args, "--cap-add="+name)
	}
	if e.kind == docker {
		args = append(args, "--init") // the one of podman is a package of its own
	} else {
		args = append(args, "--stop-signal=KILL") // sleep ignores SIGTERM, after which podman rm waits 10 s
	}
	if of.Isolated {
		args = append(args, "--network=none")
	}
	if of.Connected {
		args = append(args, "--security-opt=label=disable") // SELinux refuses sockets otherwise
	}
	if of.Proxied {
		args = append(args, "--sysctl="+portSetting+"=0")
	}
	if n := of.Limits.Memory; n > 0 {
		limit := strconv.FormatInt(n, 10)
		args = append(args, "--memory="+limit, "--memory-swap="+limit)
	}
	if n := of.Limits.Processes; n > 0 {
		args = append(args, "--pids-limit="+strconv.FormatInt(n, 10))
	}
	if n := of.Limits.FileSize; n > 0 {
		args = append(args, fmt.Sprintf("--ulimit=fsize=%d:%d", n, n))
	}
	if n := of.Limits.Files; n > 0 {
		args = append(args, fmt.Sprintf("--ulimit=nofile=%d:%d", n, n))
	}
	args = append(args, e.ownLimits(of.Limits)...)
	for _, m := range mounts {
		args = append(args, "--mount="+m.option())
	}
	return append(args, "--entrypoint=sleep", image, sleepTime), nil
}

// ownLimits returns the options with the limits of this process. With any option --ulimit, podman ignores
// the limits of its configuration, and raises others to a maximum that this process may not be allowed to set.
func (e *Engine) ownLimits(l Limits) (args []string) {
	if e.kind != podman || e.isService() || l.FileSize <= 0 && l.Files <= 0 {
		return nil
	}
	for _, r := range []struct {
		name     string
		resource int
		most     uint64 // podman's own maximum
		given    bool
	}{{"nofile", unix.RLIMIT_NOFILE, 1 << 20, l.Files > 0}, {"nproc", unix.RLIMIT_NPROC, maxProcesses(), false}} {
		var own unix.Rlimit
		if r.given || unix.Getrlimit(r.resource, &own) != nil {
			continue
		}
		most := min(uint64(own.Max), r.most) //nolint:unconvert // it is signed on FreeBSD
		args = append(args, fmt.Sprintf("--ulimit=%s=%d:%d", r.name, most, most))
	}
	return args
}

// maxProcesses returns the largest number of processes of this machine. podman lowers its own limit to it.
func maxProcesses() uint64 {
	text, _ := os.ReadFile("/proc/sys/kernel/pid_max")
	if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32); err == nil {
		return n
	}
	return 1 << 22 // that of the kernel
}

// portSetting is the first port on which every user can listen.
const portSetting = "net.ipv4.ip_unprivileged_port_start"

// mounts returns the mounts of containers, without entrances.
func (c *Containers) mounts(of Box) ([]Mount, error) {
	mounts := slices.Clone(of.Mounts)
	if of.Connected || of.Self {
		s, err := findSelf()
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, s.mounts...)
	}
	if of.Proxied {
		if _, err := c.entrances.prepare(c.id); err != nil {
			return nil, err
		}
		mounts = append(mounts, Mount{Target: resolver, Source: c.entrances.resolver()})
	}
	return mounts, nil
}

// option returns the value of the option --mount, which is a line of CSV.
func (m Mount) option() string {
	fields := []string{"type=volume", "target=" + m.Target}
	if m.Source != "" {
		fields = []string{"type=bind", "source=" + m.Source, "target=" + m.Target}
		if !m.Writable {
			fields = append(fields, "readonly")
		}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // a strings.Builder has no errors
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
