package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxDying limits the wait for the end of a killed control group.
const maxDying = 2 * time.Second

// cgroup is a control group of version 2. Programs that are started in it and all their
// descendants stay in it, whatever they do to their session, parents and environment. The zero
// value is no group. A cgroup belongs to one [Scope].
type cgroup struct {
	dir string // empty for no group
	fd  int    // of dir
}

// cgroups manages the control groups of this process: subdirectories of one directory. That
// exists from the first group until no scope and no group is left, because creating it takes as
// long as creating a group.
var cgroups struct {
	scopes  atomic.Int64 // number of scopes that have not ended
	open    atomic.Int64 // number of existing groups
	count   atomic.Int64 // number of created groups
	refused atomic.Bool
}

// killable reports whether groups can be killed, which Linux 5.14 introduced. Some group must exist.
var killable = sync.OnceValue(func() bool {
	_, err := os.Stat(filepath.Join(cgroupDir(), "cgroup.kill"))
	return err == nil
})

// openScope and closeScope keep the directory of the groups.
func openScope() { cgroups.scopes.Add(1) }

func closeScope() {
	cgroups.scopes.Add(-1)
	leaveCgroups()
}

// leaveCgroups removes the directory of all groups if nothing needs it. It fails while another
// goroutine creates a group there, and newCgroup creates the directory again.
func leaveCgroups() {
	if cgroups.count.Load() > 0 && cgroups.scopes.Load() <= 0 && cgroups.open.Load() <= 0 {
		_ = unix.Rmdir(cgroupDir())
	}
}

// cgroupDir returns the directory for this process's control groups; empty where no part of the
// tree is delegated to it.
var cgroupDir = sync.OnceValue(func() string {
	own := ownCgroup()
	if own == "" || !delegated(own) {
		return ""
	}
	removeStale(own)
	return filepath.Join(own, fmt.Sprintf("waza-%d-%d", os.Getpid(), time.Now().UnixNano()))
})

// removeStale removes empty groups of processes that ended without removing them.
func removeStale(own string) {
	dirs, _ := filepath.Glob(filepath.Join(own, "waza-*-*"))
	for _, dir := range dirs {
		var pid, at int
		if _, err := fmt.Sscanf(filepath.Base(dir), "waza-%d-%d", &pid, &at); err == nil && !Exists(pid) {
			_ = removeCgroup(dir)
		}
	}
}

// ownCgroup returns the directory of this process's control group.
func ownCgroup() string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return cgroupPath(string(groups), string(mounts))
}

// cgroupPath finds the directory from the texts of /proc/self/cgroup and /proc/self/mountinfo,
// see cgroups(7) and proc_pid_mountinfo(5).
func cgroupPath(groups, mounts string) string {
	path := ""
	for line := range strings.Lines(groups) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path = rest
		}
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/..") { // outside of our namespace
		return ""
	}
	for line := range strings.Lines(mounts) {
		left, right, ok := strings.Cut(line, " - ")
		fields := strings.Fields(left)
		if !ok || len(fields) < 5 || !strings.HasPrefix(right, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(fields[3], path)
		if err == nil && filepath.IsLocal(below) {
			return filepath.Join(fields[4], below)
		}
	}
	return ""
}

// delegated reports whether this process may create control groups below a directory: its user
// owns the directory or, for root, the system manager left it to us or does not exist. See
// "Control Group APIs and Delegation" of systemd.
func delegated(dir string) bool {
	if unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) != nil || unix.Access(dir, unix.W_OK) != nil {
		return false
	}
	var value [8]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	_, err := os.Stat("/run/systemd/system")
	return os.Geteuid() != 0 || errors.Is(err, fs.ErrNotExist)
}

// newCgroup creates a control group. It returns nil where that is impossible.
func newCgroup() *cgroup {
	home := cgroupDir()
	if home == "" || cgroups.refused.Load() {
		return nil
	}
	g := &cgroup{dir: filepath.Join(home, strconv.FormatInt(cgroups.count.Add(1), 10))}
	cgroups.open.Add(1)
	err := unix.Mkdir(g.dir, 0o755)
	for tries := 0; errors.Is(err, fs.ErrNotExist) && tries < 10; tries++ { // it has just been removed
		if err = unix.Mkdir(home, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			err = unix.Mkdir(g.dir, 0o755)
		}
	}
	if err == nil && killable() {
		if g.fd, err = unix.Open(g.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			return g
		}
	}
	_ = unix.Rmdir(g.dir)
	cgroups.open.Add(-1)
	leaveCgroups()
	return nil
}

// none reports whether there is no group.
func (g *cgroup) none() bool { return g == nil || g.dir == "" }

// gone reports whether a program removed the group. The directory may exist again, as another group.
func (g *cgroup) gone() bool {
	var st unix.Stat_t
	return !g.none() && unix.Fstatat(g.fd, "cgroup.procs", &st, 0) != nil
}

// attr makes a program start in the group.
func (g *cgroup) attr(attr *syscall.SysProcAttr) {
	if !g.none() && !cgroups.refused.Load() {
		attr.UseCgroupFD, attr.CgroupFD = true, g.fd
	}
}

// end kills the processes in the group, removes it and returns the number of killed processes.
func (g *cgroup) end() int {
	if g.none() {
		return 0
	}
	unix.Close(g.fd)
	killed := 0
	if unix.Rmdir(g.dir) != nil { // not empty
		killed = endCgroup(g.dir)
	}
	cgroups.open.Add(-1)
	leaveCgroups()
	return killed
}

// endCgroup kills the processes in a group and its subgroups, removes the groups and returns the
// number of killed processes.
func endCgroup(dir string) int {
	procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	killed := strings.Count(string(procs), "\n")
	for pause, until := 100*time.Microsecond, time.Now().Add(maxDying); ; pause = min(2*pause, 20*time.Millisecond) {
		if removeCgroup(dir) == nil || time.Now().After(until) {
			return killed
		}
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		time.Sleep(pause)
	}
}

// removeCgroup removes groups without processes, deepest first.
func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			_ = removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	return os.Remove(dir)
}

// refused reports whether a program could not be started because of its group. No group is used
// afterwards, unless only this one is gone.
func (g *cgroup) refused(err error) bool {
	if g.none() || err == nil || cgroups.refused.Load() {
		return false
	}
	if g.gone() {
		return true
	}
	for _, no := range []syscall.Errno{
		syscall.ENOSYS, syscall.EINVAL, syscall.EPERM, syscall.EACCES, syscall.EBUSY, syscall.EOPNOTSUPP,
		syscall.EBADF, syscall.ENODEV,
	} {
		if errors.Is(err, no) {
			cgroups.refused.Store(true)
			return true
		}
	}
	return false
}
