//go:build unix

package seal

import (
	"io/fs"
	"os"
	"syscall"
)

// forbidden returns the permissions that a file with a seed must not have. A file of a different
// user can only be read through its group.
func forbidden(info fs.FileInfo) fs.FileMode {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return 0o037
	}
	return 0o077
}
