package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox/internal/handover"
	"waza/runner/sandbox/internal/proxy"
)

// host is what the sandboxes of a run keep on Linux.
type host struct {
	open     pool
	isolated pool // its keepers have a network of their own
}

func newHost() host { return host{isolated: pool{isolated: true}} }

func (h *host) close() {
	h.open.close()
	h.isolated.close()
}

func (h *host) sandbox(s *Sandboxes, v View) *proc.Sandbox {
	if s.tier == record.TierLandlock {
		return &proc.Sandbox{Restrict: func(cmd *exec.Cmd) error { return s.restrictThread(v, cmd) }}
	}
	return &proc.Sandbox{Launch: func(cmd *exec.Cmd, mark uint64) (proc.Child, error) {
		child, err := s.launch(v, cmd, mark)
		if err != nil {
			return nil, err
		}
		return child, nil
	}}
}

// launch starts a program in namespaces.
func (s *Sandboxes) launch(v View, cmd *exec.Cmd, mark uint64) (*program, error) {
	v.Env = cmd.Env
	net, err := s.network(&v, false)
	if err != nil {
		return nil, err
	}
	mounts := s.policy.mounts(cmd.Path, &v)
	r := &startRequest{
		Path: cmd.Path, Args: cmd.Args, Env: environ(net.env, mounts), Dir: cmd.Dir,
		Mounts: mounts, Mark: mark, Limits: s.policy.Limits, Roots: writable(mounts), Counted: v.Write, Listen: net.addresses(),
	}
	if cmd.Dir == "" {
		r.Dir = "/"
	}
	if len(r.Listen) > 0 {
		r.Mounts = append(r.Mounts, Mount{Kind: File, Target: "/etc/resolv.conf", Source: proxy.ResolverFile})
	}
	r.Env = (&exec.Cmd{Env: append([]string{}, r.Env...)}).Environ() // most programs use the first of several values, not the last
	child, sockets, err := s.host.pool(net.isolated).launch(cmd, r)
	if err != nil {
		net.close()
		if _, here := os.Stat(cmd.Path); errors.Is(err, fs.ErrNotExist) && filepath.IsAbs(cmd.Path) && here == nil {
			return nil, errNotVisible(cmd.Path, err)
		}
		return nil, err
	}
	defer handover.CloseAll(sockets)
	child.proxy = net.proxy
	if err := net.serve(sockets); err != nil {
		child.Kill()
		_ = child.Wait()
		return nil, err
	}
	return child, nil
}

func (h *host) pool(isolated bool) *pool {
	if isolated {
		return &h.isolated
	}
	return &h.open
}

// environ changes the variables that name directories which a program does not see.
func environ(env []string, mounts []Mount) []string {
	dir := variable(env, "TMPDIR")
	if dir == "" || slices.ContainsFunc(mounts, func(m Mount) bool { return m.Writable && within(m.Target, filepath.Clean(dir)) }) {
		return env
	}
	return append(env[:len(env):len(env)], "TMPDIR=/tmp")
}

// restrictThread restricts the calling thread to the view of a program that it starts next.
func (s *Sandboxes) restrictThread(v View, cmd *exec.Cmd) error {
	CloseInherited()
	v.Env = cmd.Env
	read, write := []string{"/proc", "/dev"}, []string{"/dev"}
	for _, m := range s.policy.mounts(cmd.Path, &v) {
		switch {
		case m.Kind == Overlay || m.Kind == Bind && m.Writable:
			write = append(write, m.Target)
		case m.Kind == Bind && m.Source == m.Target:
			read = append(read, m.Target)
		case m.Kind == Empty && m.Writable && strings.HasSuffix(m.Target, "tmp") && !s.holdsHidden(m.Target):
			write = append(write, m.Target)
		}
	}
	if home := variable(v.Env, "HOME"); filepath.IsAbs(home) {
		for _, name := range caches {
			write = append(write, filepath.Join(home, name))
		}
	}
	for _, restrict := range []func() error{
		noNewPrivileges,
		dropCapabilities, // with which root reads the memory of processes in spite of Landlock
		func() error { return restrictFiles(read, write) },
		filterCalls,
	} {
		if err := restrict(); err != nil {
			return err
		}
	}
	return nil
}

// caches are the directories below the home directory that many programs need, and that the tier
// Landlock cannot replace with empty ones.
var caches = []string{".cache", ".npm"}

// holdsHidden reports whether a directory contains something that must stay hidden.
func (s *Sandboxes) holdsHidden(dir string) bool {
	return slices.ContainsFunc(s.policy.Hidden, func(hidden string) bool { return within(dir, hidden) })
}

// Detect returns what this machine has. It tries each tier once per process and takes some
// milliseconds then. Namespaces need a program that calls [Main].
var Detect = sync.OnceValue(func() *Machine {
	m := &Machine{Namespaces: tryNamespaces(), Landlock: tryLandlock(), Seatbelt: errNotMac}
	if m.Namespaces == nil {
		if m.Landlock != nil {
			m.Missing = append(m.Missing, "Landlock, which would restrict what programs can change a second time: "+m.Landlock.Error())
		}
	}
	if m.Landlock == nil && landlockVersion() < 6 && m.Namespaces != nil {
		m.Missing = append(m.Missing, "programs can end processes of this user, because Landlock cannot prevent that before Linux 6.12")
	}
	return m
})

func tryLandlock() error {
	if landlockVersion() == 0 {
		return &hint{errors.New("the kernel has no Landlock"), "it needs Linux 5.13 with landlock among the security modules (lsm=)"}
	}
	_, err := filter()
	return step("seccomp", err)
}

// tryNamespaces builds a sandbox without a program.
func tryNamespaces() error {
	if !mainCalled.Load() {
		return errors.New("the program that runs the suite does not call sandbox.Main")
	}
	var p pool
	defer p.close()
	keeper, err := p.get()
	if err != nil {
		return explain(err)
	}
	defer p.put(keeper)
	mounts := (&Policy{}).mounts("", &View{})
	if err := handover.Send(keeper.conn, &request{Start: &startRequest{Mounts: mounts, Roots: writable(mounts)}}); err != nil {
		return err
	}
	_, _, err = keeper.await()
	return explain(err)
}

// explain adds to the reason why there are no namespaces how to get them.
func explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case strings.Contains(text, stepProc):
		return &hint{err, "a container masks parts of /proc; start it with --security-opt systempaths=unconfined"}
	case errors.Is(err, syscall.ENOSYS):
		return &hint{err, "namespaces need Linux 5.12"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS):
		return &hint{err, "allow user namespaces: sysctl user.max_user_namespaces=15000"}
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EINVAL):
		return &hint{err, refusedBy()}
	}
	return err
}

// refusedBy returns what keeps this machine from creating user namespaces, and the remedy.
func refusedBy() string {
	switch {
	case settingIs("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		return "AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or install a profile for waza, see docs/sandbox.md"
	case settingIs("/proc/sys/kernel/unprivileged_userns_clone", "0"):
		return "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
	case unix.Access("/.dockerenv", unix.F_OK) == nil || unix.Access("/run/.containerenv", unix.F_OK) == nil:
		return "a container refuses user namespaces; start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined " +
			"--security-opt systempaths=unconfined"
	}
	return "this machine refuses user namespaces; allow them, see docs/sandbox.md"
}

func settingIs(path, value string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.TrimSpace(string(text)) == value
}

// CloseInherited keeps the files that this process inherited, other than its standard streams, from
// the programs that it starts.
func CloseInherited() { _ = unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) }
