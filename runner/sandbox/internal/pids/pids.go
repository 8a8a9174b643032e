// Package pids limits the number of processes in a process namespace by the ids that it can give: see
// [Max].
package pids

import (
	"fmt"
	"os"
	"sync"
)

// File is where a process in the namespace writes the largest id.
const File = "/proc/sys/kernel/pid_max"

// Ids below reserved are given only once, and waza's own processes need some.
const (
	reserved = 300
	own      = 100
	largest  = 1 << 22 // that Linux accepts
)

// Max returns the largest id of a namespace that can have that many processes and threads at the same
// time, and up to 400 more. It returns false if most is 0, and on a machine that has only one limit for
// all namespaces.
func Max(most int64) (limit int64, ok bool) {
	if most <= 0 || !OfNamespace() {
		return 0, false
	}
	return min(reserved+own+most, largest), true
}

// OfNamespace reports whether the largest id belongs to a process namespace, as since Linux 6.14. Before, it is
// that of the machine, which root could change from a namespace.
var OfNamespace = sync.OnceValue(func() bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(release), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 14
})
