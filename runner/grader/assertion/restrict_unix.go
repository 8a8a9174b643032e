//go:build unix

package assertion

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// restrict limits what this process, a worker, can take: memory, core files and the files it
// writes. It also closes inherited descriptors. It skips limits that the system does not have.
func restrict() {
	closeInherited()
	lower(unix.RLIMIT_CORE, 0)
	lower(unix.RLIMIT_FSIZE, 0)
	if raceDetector {
		return // its shadow memory is many times larger
	}
	lower(unix.RLIMIT_DATA, dataInUse()+hardLimit)
}

// lower sets a limit unless a lower one is set.
func lower(resource int, most uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(resource, &l) != nil {
		return
	}
	l.Cur, l.Max = min(l.Cur, most), min(l.Max, most)
	_ = unix.Setrlimit(resource, &l)
}

// closeInherited closes the descriptors that the program which started waza left open. The Go
// runtime closes its own descriptors on exec, but not inherited ones.
func closeInherited() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// watchCPU ends the process when it reaches its limit of processor time.
var watchCPU = sync.OnceFunc(func() {
	exceeded := make(chan os.Signal, 1)
	signal.Notify(exceeded, syscall.SIGXCPU)
	go func() {
		<-exceeded
		quit("it took too much processor time")
	}()
})

// limitCPU lets this process use that many more seconds of processor time; 0 means no limit.
func limitCPU(seconds int) {
	var used unix.Rusage
	var l unix.Rlimit
	if seconds <= 0 || unix.Getrusage(unix.RUSAGE_SELF, &used) != nil || unix.Getrlimit(unix.RLIMIT_CPU, &l) != nil {
		return
	}
	watchCPU()
	l.Cur = min(l.Max, uint64(used.Utime.Sec)+uint64(used.Stime.Sec)+uint64(seconds)+1)
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &l)
}

// dataInUse returns the size of the memory that counts for RLIMIT_DATA.
func dataInUse() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "\nVmData:")
	kib, err := strconv.ParseUint(strings.Fields(rest + " 0")[0], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
