package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"waza/runner/proc"
)

// A Program is a program to start in a container.
type Program struct {
	// Cmd has the program's arguments, environment and directory. The container's own PATH counts.
	// Its streams are files or nil. Its ExtraFiles reach the program if the engine connects; otherwise
	// the program does not get the variables that name their descriptors.
	Cmd *exec.Cmd
	// In are directories and files that are copied into the container, to the same paths.
	In []string
	// Out are those of In that are copied out when the program has ended. They replace their
	// originals. The original of a directory that the program removed, or replaced by something else, is
	// removed.
	Out []string
	// Places are directories of In, or in them, that are elsewhere in the container. Their own paths
	// lead to them. Engines with images only.
	Places []Place
	// State names file systems that several programs use one after the other: a program starts with the
	// files that the last one with Keep left, or those of the image. Empty means those of the image.
	// Engines with images only. The caller calls [Containers.Forget] after the last one.
	State string
	Keep  bool
	// MaxOut limits the bytes of each of Out; 0 means no limit.
	MaxOut int64
	// Mark is the soft limit of file locks, by which waza recognizes its programs, if the engine shares
	// the network of this machine; 0 means none. The program cannot change it.
	Mark uint64
	// Listen are addresses in the network of the container, see [handover.Listen]. Serve takes their
	// sockets over, which the caller closes, before the program starts. Nil means that nothing is
	// served. A program with addresses or Sockets needs a Box that is Connected.
	Listen []string
	Serve  func(sockets []*os.File) error
	// Sockets are unix sockets of this machine that the program reaches, see [SocketInside].
	Sockets []string
}

// args returns the arguments of the command that starts the program in a container.
func (p *Program) args(of Box) ([]string, error) {
	if !of.Connected {
		return p.Cmd.Args, nil
	}
	command, err := Self(startArgument, entranceDir)
	return append(command, p.Cmd.Args...), err
}

// Self returns the command that starts this program in a container with it.
func Self(args ...string) ([]string, error) {
	s, err := findSelf()
	if err != nil {
		return nil, err
	}
	return slices.Concat(s.command, args), nil
}

// ErrMemory is the error of a program that exceeded the memory limit of its container.
var ErrMemory = errors.New("out of memory")

// A client is the engine's program that runs a program.
type client struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when err is set
	err   error
}

func startClient(cmd *exec.Cmd) (*client, error) {
	if err := proc.StartApart(cmd); err != nil {
		return nil, err
	}
	c := &client{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.err = cmd.Wait()
	}()
	return c, nil
}

func (c *client) wait() error {
	<-c.ended
	return c.err
}

// kill ends the client. It has no effect after the end.
func (c *client) kill() { _ = c.cmd.Process.Kill() }

// A child is a program in a container.
type child interface {
	proc.Child
	entered() (*entrance, *client)
	setPid(pid int)
}

// running is a program in a container.
type running struct {
	containers *Containers
	box        *box
	client     *client
	program    Program
	pid        int
}

// Start starts a program in a container. When it has ended, everything that it started has ended,
// and its files are copied out, before Wait returns.
//
// Files besides the streams need a connection, but not every engine that could have one does: it can
// lack the files of this process, or have a kernel of its own. Then the program starts without them.
func (c *Containers) Start(of Box, p Program) (proc.Child, error) {
	of.Self = strings.HasPrefix(p.Cmd.Args[0], wazaDir+"/")
	optional := !of.Connected && len(p.Cmd.ExtraFiles) > 0
	if optional && c.engine.Connects() == nil && !c.unconnected.Load() {
		connected := of
		connected.Connected = true
		started, err := c.start(connected, p)
		if err == nil {
			if _, err = awaited(started); err == nil {
				return started, nil
			}
			started.Kill()
			_ = started.Wait()
		}
		if errors.Is(err, errClosed) {
			return nil, err
		}
		c.unconnected.Store(true)
	}
	if optional {
		without := *p.Cmd
		without.ExtraFiles, without.Env = nil, withoutDescriptors(p.Cmd.Env)
		p.Cmd = &without
	}
	started, err := c.start(of, p)
	if err != nil {
		return nil, err
	}
	if of.Connected {
		_, _ = awaited(started) // Wait reports the fault
	}
	return started, nil
}

// awaited waits until a program in a connected container starts.
func awaited(started child) (pid int, err error) {
	entrance, client := started.entered()
	pid, err = entrance.await(client.ended)
	if err != nil {
		client.kill()
		return 0, err
	}
	started.setPid(pid)
	return pid, nil
}

func (c *Containers) start(of Box, p Program) (child, error) {
	if c.engine.kind == oci {
		return c.startRoot(of, p)
	}
	image, err := c.image(context.Background(), of.Image)
	if err != nil {
		return nil, err
	}
	if p.Places, err = c.located(image, p.Places); err != nil {
		return nil, err
	}
	b, err := c.take(of, image, p.State, p.Keep)
	if err != nil {
		return nil, err
	}
	if err = c.fill(b, &p, of.Mounts); err != nil {
		c.release(b)
		return nil, err
	}
	command, err := p.args(of)
	if err == nil && of.Connected {
		err = b.entrance.serve(&p)
	}
	if err != nil {
		c.release(b)
		return nil, err
	}
	options, env := environ(&p, of.Mounts)
	args := append([]string{c.engine.path, "exec"}, options...)
	if p.Cmd.Stdin != nil {
		args = append(args, "--interactive")
	}
	if p.Cmd.Dir != "" {
		args = append(args, "--workdir", p.Cmd.Dir)
	}
	args = append(append(args, b.name), command...)
	client, err := startClient(&exec.Cmd{
		Path: c.engine.path, Args: args, Dir: "/", Env: env,
		Stdin: p.Cmd.Stdin, Stdout: p.Cmd.Stdout, Stderr: p.Cmd.Stderr, SysProcAttr: p.Cmd.SysProcAttr,
	})
	if err != nil {
		c.release(b)
		return nil, err
	}
	return &running{containers: c, box: b, client: client, program: p}, nil
}

// entered implements [child].
func (r *running) entered() (*entrance, *client) { return r.box.entrance, r.client }

// setPid implements [child].
func (r *running) setPid(pid int) { r.pid = pid }

// Pid implements [proc.Child].
func (r *running) Pid() int { return r.pid }

// Kill implements [proc.Child]. Wait ends the rest.
func (r *running) Kill() { r.client.kill() }

// engineFault is the exit code of a client whose engine failed.
const engineFault = 125

// killed is the exit code of a program that was ended by SIGKILL.
const killed = 128 + 9

// Wait implements [proc.Child].
func (r *running) Wait() error {
	c := r.containers
	defer c.release(r.box)
	err := r.client.wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = &proc.ExitError{Code: exit.ExitCode()}
		switch exit.ExitCode() {
		case engineFault:
			err = fmt.Errorf("%s cannot run the program: %w", c.engine, err)
		case killed:
			if c.exceededMemory(r.box) {
				err = ErrMemory
			}
		}
	}
	// A container that has ended already cannot be killed, which is no error. One that still runs is
	// ended by release.
	_, _ = c.engine.output(context.Background(), commandTime, "kill", r.box.name)
	if c.engine.kind == podman {
		// podman removes the mounts of an ended container in a process of its own, also while others copy from it.
		_, _ = c.engine.output(context.Background(), commandTime, "wait", "--condition=exited", "--interval=20ms", r.box.name)
	}
	if fault := r.box.entrance.close(); fault != nil {
		return notStarted(fault)
	}
	if fault := r.takeOver(); fault != nil {
		fault = &proc.LostError{Err: fault}
		c.spoil(r.box.state, fault)
		return fault
	}
	return err
}

// takeOver copies the files of the program out, and keeps its file system.
func (r *running) takeOver() error {
	for _, path := range r.program.Out {
		if err := r.containers.copyOut(r.box, &r.program, path); err != nil {
			return fmt.Errorf("%s cannot be copied from the container: %w", path, err)
		}
	}
	if !r.program.Keep {
		return nil
	}
	err := r.containers.keep(r.box)
	if isTooLong(err) {
		r.containers.spoil(r.box.state, fmt.Errorf("%w: %w", ErrMeddled, err))
		return nil
	}
	return err
}

// notStarted is the error of a program that waza in the container could not start.
func notStarted(fault error) error {
	return fmt.Errorf("the program cannot be started in the container: %w", fault)
}

// exceededMemory reports whether the kernel killed a process of a container because of its memory.
func (c *Containers) exceededMemory(b *box) bool {
	text, err := c.engine.output(context.Background(), commandTime, "inspect", "--format", "{{.State.OOMKilled}}", b.name)
	return err == nil && text == "true"
}

// environ returns the options with the variables of a program, and the environment of the engine's
// client. Options contain no values, which every user of the machine could see, except those of
// variables that the client itself uses.
func environ(p *Program, mounts []Mount) (options, client []string) {
	client = os.Environ()
	for _, kv := range p.variables(mounts) {
		name, value, _ := strings.Cut(kv, "=")
		own, set := os.LookupEnv(name)
		switch {
		case set && own == value:
			options = append(options, "--env", name)
		case ofClient(name):
			options = append(options, "--env", kv)
		default:
			options, client = append(options, "--env", name), append(client, kv)
		}
	}
	return options, client
}

// descriptorNames are the variables with the number of a descriptor.
var descriptorNames = []string{"WAZA_EVENTS_FD", "WAZA_RESULT_FD"}

// withoutDescriptors returns an environment without the variables of descriptors.
func withoutDescriptors(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(descriptorNames, name)
	})
}

// variables returns the environment of a program without variables that mean nothing in a container.
func (p *Program) variables(mounts []Mount) []string {
	var list []string
	last := map[string]int{}
	for i, kv := range p.Cmd.Env {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	for i, kv := range p.Cmd.Env {
		name, value, _ := strings.Cut(kv, "=")
		if last[name] != i || !isName(name) || ofMachine(name, value) ||
			name == "TMPDIR" && !holds(p, mounts, value) {
			continue
		}
		list = append(list, kv)
	}
	return list
}

// home returns the home directory of a program that the container must get; empty for none.
func (p *Program) home(mounts []Mount) string {
	home := variable(p.Cmd.Env, "HOME")
	if !filepath.IsAbs(home) || filepath.Clean(home) == "/" || mounted(mounts, home) {
		return ""
	}
	return home
}

// isName reports whether a name of a variable has a form that engines pass unchanged.
func isName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// machineNames are variables that describe this machine, unless the suite changed them.
var machineNames = map[string]bool{
	"LD_LIBRARY_PATH": true, "GOROOT": true, "GOPATH": true, "JAVA_HOME": true, "VIRTUAL_ENV": true, "CONDA_PREFIX": true,
	"NVM_DIR": true, "RUSTUP_HOME": true, "CARGO_HOME": true, "NODE_PATH": true, "PYTHONPATH": true, "PYTHONHOME": true,
	"SHELL": true, "USER": true, "LOGNAME": true, "HOSTNAME": true, "PWD": true, "OLDPWD": true, "SSH_AUTH_SOCK": true,
	"DISPLAY": true, "WAYLAND_DISPLAY": true, "XAUTHORITY": true, "DBUS_SESSION_BUS_ADDRESS": true, "XDG_RUNTIME_DIR": true,
}

// ofMachine reports whether a variable has no meaning in a container: it describes this machine, or
// files that do not reach the program.
func ofMachine(name, value string) bool {
	switch {
	case name == "WAZA_GRADER_OUTPUT", strings.HasPrefix(name, "WAZA_MARK_"):
		return true
	case name == "PATH":
		own := os.Getenv("PATH")
		return own == "" || strings.Contains(value, own)
	case machineNames[name], ofEngine(name):
		return value == os.Getenv(name)
	}
	return false
}

// ofEngine reports whether a variable configures an engine.
func ofEngine(name string) bool {
	for _, prefix := range []string{"DOCKER_", "BUILDKIT_", "CONTAINER_", "CONTAINERS_", "PODMAN_", "STORAGE_", "REGISTRY_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == RuntimeVariable
}

// ofClient reports whether a variable changes what the engine's client itself does.
func ofClient(name string) bool {
	return ofEngine(name) || name == "PATH" || name == "HOME" || name == "TMPDIR" ||
		strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "GODEBUG") || strings.HasPrefix(name, "SSH_")
}

// holds reports whether a path of this machine exists in the container.
func holds(p *Program, mounts []Mount, path string) bool {
	for _, dir := range p.In {
		if within(dir, path) {
			return true
		}
	}
	return mounted(mounts, path)
}

// mounted reports whether a path is in one of the mounts.
func mounted(mounts []Mount, path string) bool {
	for _, m := range mounts {
		if within(m.Target, path) {
			return true
		}
	}
	return false
}

// within reports whether a path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
