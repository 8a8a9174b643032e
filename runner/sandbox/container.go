package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"waza/eval/surroundings"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox/internal/container"
)

// checkContainer returns the fault of keys that containers cannot keep; nil if they keep all.
func (p *Policy) checkContainer() error {
	switch {
	case p.Isolated && !p.Allow.Empty():
		return &hint{
			errors.New("config.sandbox.network: containers reach the whole network or none of it, but the suite lists hosts"),
			"choose open or none, or the mode strict, which can limit programs to hosts",
		}
	case p.WithholdKeys:
		return &hint{
			errors.New("config.sandbox.keys: a container does not reach the proxy that adds keys"),
			"choose shared, or the mode strict",
		}
	}
	return nil
}

// openContainers finds the engine of containers.
func (s *Sandboxes) openContainers() error {
	if err := s.policy.checkContainer(); err != nil {
		return err
	}
	engine, err := container.Find(context.Background())
	if err != nil {
		return fmt.Errorf("config.sandbox: %w", err)
	}
	if s.containers, err = engine.Open(context.Background()); err != nil {
		return fmt.Errorf("config.sandbox: %w", err)
	}
	return nil
}

// Prepare makes the image of the policy available: it pulls or builds it, which can take minutes. It
// does nothing for other tiers than Container.
func (s *Sandboxes) Prepare(ctx context.Context) error {
	if s.Tier() != record.TierContainer || s.policy.Image == (surroundings.SandboxImage{}) {
		return nil
	}
	if err := s.containers.Prepare(ctx, s.policy.image(surroundings.SandboxImage{})); err != nil {
		return fmt.Errorf("config.sandbox: %w", err)
	}
	return nil
}

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
	return &proc.Sandbox{Elsewhere: true, Launch: func(cmd *exec.Cmd, _ uint64) (proc.Child, error) {
		if err := s.policy.checkReach(&v); err != nil {
			return nil, err
		}
		v := v
		v.Env = cmd.Env
		child, err := s.containers.Start(container.Box{
			Image: s.policy.image(v.Image), Isolated: s.policy.Isolated || v.Isolated, Mounts: s.policy.containerMounts(&v),
			Limits: s.policy.Limits.ofContainer(),
		}, container.Program{Cmd: cmd, In: existing(slices.Concat(v.Write, v.Copy)), Out: existing(v.Write), MaxOut: s.policy.Limits.Disk})
		if err != nil {
			return nil, err
		}
		return inContainer{child}, nil
	}}
}

// ofContainer returns the limits of a container.
func (l Limits) ofContainer() container.Limits {
	return container.Limits{Memory: l.Memory, Processes: l.Processes, FileSize: l.Disk, Files: l.Files}
}

// checkReach returns the reason why a program in a container cannot use what its view names; nil if
// it can.
func (p *Policy) checkReach(v *View) error {
	for _, path := range v.Read {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return &hint{
				fmt.Errorf("a program in a container does not reach the socket %s of this machine, through which waza serves an MCP server", path),
				"use a different mode of config.sandbox for suites with mocks of MCP servers",
			}
		}
	}
	for _, address := range v.Reach {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = address
		}
		if ip := net.ParseIP(host); p.Isolated || host == "localhost" || ip != nil && ip.IsLoopback() {
			return &hint{
				fmt.Errorf("a program in this container does not reach %s, the address of an MCP server", address),
				"use a different mode of config.sandbox, or an MCP server of another machine and an open network",
			}
		}
	}
	return nil
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
	if !v.Suite {
		for _, dir := range p.Hidden {
			b.hide(dir)
		}
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

// inContainer is a program in a container.
type inContainer struct{ proc.Child }

func (c inContainer) Wait() error {
	err := c.Child.Wait()
	if errors.Is(err, container.ErrMemory) {
		return &LimitError{"it exceeded config.sandbox.limits.memory"}
	}
	return err
}
