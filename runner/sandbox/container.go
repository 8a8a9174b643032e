package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"waza/eval/surroundings"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox/internal/container"
)

// checkContainer returns the fault of keys that the containers of an engine cannot keep; nil if they
// keep all.
func (p *Policy) checkContainer(e *container.Engine) error {
	key, instead := "", ""
	switch {
	case p.Isolated && !p.Allow.Empty():
		key, instead = "network: containers reach hosts by name through a proxy of waza", "open or none"
	case p.WithholdKeys:
		key, instead = "keys: the proxy of waza adds keys", "shared"
	default:
		return nil
	}
	if err := e.Connects(); err != nil {
		return &hint{
			fmt.Errorf("config.sandbox.%s, which they cannot reach here: %w", key, err),
			"choose " + instead + ", or the mode strict",
		}
	}
	return nil
}

// openContainers finds the engine of containers.
func (s *Sandboxes) openContainers() error {
	engine, err := container.Find(context.Background())
	if err != nil {
		return fmt.Errorf("config.sandbox: %w", err)
	}
	if err := s.policy.checkContainer(engine); err != nil {
		return err
	}
	if s.containers, err = engine.Open(context.Background()); err != nil {
		return fmt.Errorf("config.sandbox: %w", err)
	}
	return nil
}

// Prepare makes the image of a task available, or that of the policy if the task has none: it pulls or
// builds it, which can take minutes. It does nothing for other tiers than Container, and without an image.
func (s *Sandboxes) Prepare(ctx context.Context, own surroundings.SandboxImage) error {
	if s.Tier() != record.TierContainer || s.policy.image(own) == (container.Image{}) {
		return nil
	}
	if err := s.containers.Prepare(ctx, s.policy.image(own)); err != nil {
		if own != (surroundings.SandboxImage{}) {
			return err
		}
		return fmt.Errorf("config.sandbox: %w", err)
	}
	return nil
}

// ErrMeddled is the error of a program that would find files of an earlier program in its Elsewhere.
var ErrMeddled = container.ErrMeddled

// ErrDisk is the error of a program in a container whose files exceed the limit of the disk.
var ErrDisk = container.ErrDisk

// image returns the image of a task that can have one of its own.
func (p *Policy) image(own surroundings.SandboxImage) container.Image {
	if own == (surroundings.SandboxImage{}) {
		own = p.Image
	}
	image := container.Image{Name: own.Image}
	if own.Dockerfile != "" {
		image.Dockerfile = surroundings.Absolute(own.Dockerfile, p.Dir, "")
	}
	return image
}

// container returns a sandbox that starts programs in containers.
func (s *Sandboxes) container(v View) *proc.Sandbox {
	return &proc.Sandbox{Elsewhere: true, Launch: func(cmd *exec.Cmd, mark uint64) (proc.Child, error) {
		child, err := s.launchInContainer(v, cmd, mark)
		if err != nil {
			return nil, err
		}
		return child, nil
	}}
}

// launchInContainer starts a program in a container.
func (s *Sandboxes) launchInContainer(v View, cmd *exec.Cmd, mark uint64) (*inContainer, error) {
	v.Env = cmd.Env
	engine := s.containers.Engine()
	net, err := s.network(&v, engine.OwnLoopback())
	if err != nil {
		return nil, err
	}
	var sockets []string
	sockets, v.Read = socketsOf(v.Read)
	box := container.Box{
		Image: s.policy.image(v.Task.SandboxImage), Isolated: net.isolated, Mounts: s.policy.containerMounts(&v), Limits: s.policy.Limits.ofContainer(),
		Connected: len(net.listen)+len(sockets) > 0, Proxied: net.isolated && len(net.listen) > 0,
	}
	if box.Connected {
		if err := engine.Connects(); err != nil {
			net.close()
			return nil, &hint{
				fmt.Errorf("a program in a container does not reach an MCP server of this machine: %w", err),
				"use a different mode of config.sandbox for suites with such servers or with mocks",
			}
		}
	}
	inside := *cmd
	inside.Env = net.env
	child, err := s.containers.Start(box, container.Program{
		Cmd: &inside, In: existing(slices.Concat(v.Write, v.Copy)), Out: existing(v.Write), MaxOut: s.policy.Limits.Disk,
		Places: v.places(), State: v.state(), Keep: v.state() != "" && slices.Contains(v.Write, v.Workspace),
		Mark: mark, Listen: net.addresses(), Serve: net.serve, Sockets: sockets,
	})
	if err != nil {
		net.close()
		return nil, err
	}
	if net.local != nil {
		_ = net.serve(nil) // without sockets, it has no error
	}
	return &inContainer{child, net}, nil
}

// places returns the directories that are elsewhere in a container.
func (v *View) places() (list []container.Place) {
	for _, target := range v.Task.Targets() {
		list = append(list, container.Place{Source: filepath.Join(v.Workspace, filepath.FromSlash(v.Task.Paths[target])), Target: target})
	}
	if v.Task.ImageWorkdir {
		list = append(list, container.Place{Source: v.Workspace})
	}
	for _, target := range slices.Sorted(maps.Keys(v.Elsewhere)) {
		list = append(list, container.Place{Source: filepath.Clean(v.Elsewhere[target]), Target: target, Fresh: true})
	}
	return list
}

// state returns the name of the file system that the programs of a trial share; empty if each has its
// own. Tasks with paths expect one machine: their verifiers look at programs that the agent installed.
func (v *View) state() string {
	if len(v.Task.Paths) == 0 && !v.Task.ImageWorkdir {
		return ""
	}
	return v.Workspace
}

// Forget removes what the programs of a trial left in its sandbox besides its workspace, when all of
// them have ended. It is only needed for the tier Container, and does nothing for others and for nil.
func (s *Sandboxes) Forget(workspace string) {
	if s != nil {
		s.containers.Forget(workspace)
	}
}

// Own returns the command that runs this program in the sandboxes, with arguments of which some are
// sockets that its view contains. path is that of this program outside.
func (s *Sandboxes) Own(path string, args []string) (command []string, err error) {
	if s.Tier() != record.TierContainer {
		return append([]string{path}, args...), nil
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if isSocket(arg) {
			args[i] = container.SocketInside(arg)
		}
	}
	return container.Self(args...)
}

// socketsOf splits the paths of a view into sockets and others.
func socketsOf(paths []string) (sockets, others []string) {
	for _, path := range paths {
		if isSocket(path) {
			sockets = append(sockets, path)
		} else {
			others = append(others, path)
		}
	}
	return sockets, others
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return filepath.IsAbs(path) && err == nil && info.Mode()&os.ModeSocket != 0
}

// ofContainer returns the limits of a container.
func (l Limits) ofContainer() container.Limits {
	return container.Limits{Memory: l.Memory, Processes: l.Processes, FileSize: l.Disk, Files: l.Files}
}

// existing returns the paths that exist.
func existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
}

// containerMounts returns the parts of this machine that a program in a container sees. The workspace
// is not among them, since it is copied.
func (p *Policy) containerMounts(v *View) []container.Mount {
	b := builder{policy: p, home: variable(v.Env, "HOME")}
	if p.HomeShared {
		b.homes(v)
	}
	for _, path := range existing(slices.Concat(p.Read, v.Read)) {
		b.add(Mount{Kind: Bind, Target: path, Source: path})
	}
	for _, path := range existing(slices.Concat(v.Logins, p.Write)) {
		b.add(Mount{Kind: Bind, Target: path, Source: path, Writable: true})
	}
	b.personal(v)
	for _, path := range p.hidden(v) {
		b.hide(path)
	}
	var mounts []container.Mount
	for _, m := range b.sorted() {
		mounts = append(mounts, container.Mount{Target: m.Target, Source: filepath.Clean(cmp.Or(m.Source, m.Target)), Writable: m.Writable})
		if last := &mounts[len(mounts)-1]; m.Kind == Empty {
			last.Source = ""
		}
	}
	return mounts
}

// inContainer is a program in a container. Its network ends with it.
type inContainer struct {
	proc.Child
	net *network
}

func (c *inContainer) Wait() error {
	err := c.Child.Wait()
	c.net.close()
	if errors.Is(err, container.ErrMemory) {
		return &LimitError{"it exceeded config.sandbox.limits.memory"}
	}
	return err
}
