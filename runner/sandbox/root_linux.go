package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// base is the directory on which a new root is built. Every system has it. Its contents are
// opened before.
const base = "/usr"

// stepProc is the step that containers often refuse.
const stepProc = "a process file system"

// A stepError reports which part of a sandbox this machine refused.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }

func (e *stepError) Unwrap() error { return e.err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{name, err}
}

// enterRoot gives the calling thread a root of its own that contains only the mounts. The thread
// must be locked, and not share its file system with others afterwards.
func enterRoot(mounts []Mount) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWIPC); err != nil {
		return step("a mount namespace", err)
	}
	trees := make([]int, len(mounts))
	for i := range trees {
		trees[i] = -1
	}
	defer func() {
		for _, fd := range trees {
			if fd >= 0 {
				unix.Close(fd)
			}
		}
	}()
	for i := range mounts {
		var err error
		if trees[i], err = openTree(&mounts[i]); err != nil {
			return step("mount "+mounts[i].String(), err)
		}
	}
	if err := unix.Mount("waza", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return step("a root directory", err)
	}
	if err := unix.Chdir(base); err != nil {
		return step("a root directory", err)
	}
	// The old root is now mounted over the new one, see pivot_root(2).
	if err := unix.PivotRoot(".", "."); err != nil {
		return step("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return step("unmount the old root", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return step("a root directory", err)
	}
	for i := range mounts {
		if err := place(&mounts[i], trees[i]); err != nil {
			return step("mount "+mounts[i].String(), err)
		}
	}
	for i := range mounts {
		if m := &mounts[i]; m.Kind == Empty && !m.Writable {
			if err := readOnly(m.Target, 0); err != nil {
				return step("mount "+m.String(), err)
			}
		}
	}
	return step("a read-only root", readOnly("/", 0))
}

func readOnly(path string, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// openTree returns a detached mount for a mount that exists outside of the sandbox, and -1 for
// any other.
func openTree(m *Mount) (int, error) {
	switch m.Kind {
	case Overlay:
		return openOverlay(m)
	case Proc: // that of the keeper; the kernel allows no new one in a root without one
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/proc", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return -1, err
		}
		return fd, restrictTree(fd, unix.MOUNT_ATTR_RDONLY) // root can change settings of the machine in it without capabilities
	case Bind:
	default:
		return -1, nil
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if m.Optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission)) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	attrs := uint64(unix.MOUNT_ATTR_NOSUID)
	if !m.Writable {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	if !strings.HasPrefix(m.Source, "/dev/") {
		attrs |= unix.MOUNT_ATTR_NODEV
	}
	return fd, restrictTree(fd, attrs)
}

// restrictTree adds attributes to all mounts of a detached tree.
func restrictTree(fd int, attrs uint64) error {
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs})
}

// openOverlay returns a detached overlay of a directory whose changes are in memory.
func openOverlay(m *Mount) (int, error) {
	upper, err := detached("tmpfs", func(fd int) error { return setSize(fd, m.Size) }, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, err
	}
	defer unix.Close(upper)
	for _, name := range []string{"upper", "work"} {
		if err := unix.Mkdirat(upper, name, 0o700); err != nil {
			return -1, err
		}
	}
	dir := "/proc/self/fd/" + strconv.Itoa(upper) + "/"
	return detached("overlay", func(fd int) error {
		for _, o := range [][2]string{{"lowerdir", overlayName(m.Source)}, {"upperdir", dir + "upper"}, {"workdir", dir + "work"}} {
			if err := unix.FsconfigSetString(fd, o[0], o[1]); err != nil {
				return err
			}
		}
		return unix.FsconfigSetFlag(fd, "userxattr")
	}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// overlayName quotes a path for the option lowerdir.
func overlayName(path string) string { return strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(path) }

func setSize(fd int, size int64) error {
	if size <= 0 {
		return nil
	}
	return unix.FsconfigSetString(fd, "size", strconv.FormatInt(size, 10))
}

// detached creates a file system and returns a mount of it that is not in any directory.
func detached(kind string, configure func(fd int) error, attrs int) (int, error) {
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if err := configure(fd); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attrs)
}

// place puts one mount into the new root, in which the calling thread already is.
func place(m *Mount, tree int) error {
	switch m.Kind {
	case Link:
		if err := os.MkdirAll(filepath.Dir(m.Target), 0o755); err != nil {
			return err
		}
		return os.Symlink(m.Source, m.Target)
	case Bind, Overlay, Proc:
		if tree < 0 {
			return nil // it does not exist
		}
		if err := point(tree, m.Target); err != nil {
			return err
		}
		return unix.MoveMount(tree, "", unix.AT_FDCWD, m.Target, unix.MOVE_MOUNT_F_EMPTY_PATH)
	case Empty:
		if err := os.MkdirAll(m.Target, 0o755); err != nil {
			return err
		}
		mode := m.Mode
		if mode == 0 {
			mode = 0o755
		}
		options := fmt.Sprintf("mode=%o", mode)
		if m.Size > 0 {
			options += ",size=" + strconv.FormatInt(m.Size, 10)
		}
		return unix.Mount("waza", m.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	case Devices:
		return devices(m.Target)
	case File:
		return placeFile(m)
	}
	return fmt.Errorf("unknown kind of mount %q", m.Kind)
}

// placeFile puts a file of memory in place of one of the machine. It follows links.
func placeFile(m *Mount) error {
	const temporary = "/.file"
	if err := os.WriteFile(temporary, []byte(m.Source), 0o644); err != nil {
		return err
	}
	defer os.Remove(temporary)
	tree, err := unix.OpenTree(unix.AT_FDCWD, temporary, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := point(tree, m.Target); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, m.Target, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

// point creates what a mount needs at its target: a directory or a file, like the tree.
func point(tree int, target string) error {
	var source, there unix.Stat_t
	if err := unix.Fstat(tree, &source); err != nil {
		return err
	}
	if unix.Stat(target, &there) == nil {
		return nil
	}
	if source.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// devices mounts the directory of devices, without those of the machine, which are mounts of
// their own.
func devices(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("waza", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=1m"); err != nil {
		return err
	}
	for _, name := range []string{"shm", "pts", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("waza", filepath.Join(dir, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	if err := unix.Mount("devpts", filepath.Join(dir, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return err
	}
	for _, l := range [][2]string{
		{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
	} {
		if err := os.Symlink(l[0], filepath.Join(dir, l[1])); err != nil {
			return err
		}
	}
	return nil
}
