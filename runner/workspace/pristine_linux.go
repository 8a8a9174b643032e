package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownFlags are the inode flags that file systems set themselves: that a directory has extents
// (0x80000), an index (0x1000), or its content in the inode (0x10000000).
const ownFlags = 0x80000 | 0x1000 | 0x10000000

// pristine reports whether a directory is like a new one with mode 0700: nobody has put anything
// into it or changed its mode, owner, attributes or flags.
func pristine(root *os.Root) bool {
	dir, err := root.Open(".")
	if err != nil {
		return false
	}
	defer dir.Close()
	if _, err := dir.Readdirnames(1); !errors.Is(err, io.EOF) {
		return false
	}
	info, err := dir.Stat()
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() || int(owner.Gid) != os.Getegid() {
		return false
	}
	fd := int(dir.Fd())
	if n, err := unix.Flistxattr(fd, nil); n > 0 || err != nil && !errors.Is(err, unix.ENOTSUP) {
		return false
	}
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&^ownFlags == 0 || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.ENOTSUP)
}
