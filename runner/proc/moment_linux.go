package proc

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A Moment is a point in time, on the scales of the start times and of the ids of processes. The
// zero Moment is before all others.
type Moment struct {
	ticks  uint64 // since the system booted; 0 where the system provides no start times
	lastID int    // the id that the system gave last, to a process or thread; 0 if unknown
	at     time.Time
}

const ticksPerSecond = 100 // USER_HZ, the same on all architectures that Go supports

// Now returns the present; the zero Moment where the system provides no start times of processes.
func Now() Moment {
	m := Moment{at: time.Now()} // not later than lastID is read
	var up unix.Timespec        // since the system booted, like start times
	if !dated() || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return Moment{}
	}
	m.ticks, m.lastID = uint64(up.Nano())/uint64(time.Second/ticksPerSecond), lastID()
	return m
}

// dated reports whether the system provides start times of processes. Some systems that resemble
// Linux do not.
var dated = sync.OnceValue(func() bool { return startOf(readStat("self")) > 0 })

// Linux gives ids in ascending order, to processes and threads alike, and starts again when it
// has reached the largest. /proc/loadavg shows the last one. The processes that were started
// since a moment therefore have the ids after the last one of that moment.
const (
	// maxRecent limits the ids that are tried one after the other. Trying so many takes about as
	// long as listing a hundred processes.
	maxRecent = 1000
	// idTime is less than the time in which a system can give an id, because all processors share
	// the locks for that. After as many times as there are ids, each may have been given again.
	idTime = time.Microsecond
)

// knowsIDs reports whether the ids that were given since the moment are those that follow its
// last one, up to the given one, and few.
func (m Moment) knowsIDs(last int) bool {
	return m.lastID > 0 && m.lastID <= last && last-m.lastID <= maxRecent &&
		time.Since(m.at) < time.Duration(maxID()-maxRecent)*idTime && idsAscend.Load()
}

// idsAscend reports whether the id of a program that this process has started was one of those that
// lastID promised. Systems that resemble Linux may show something else in /proc/loadavg.
var idsAscend atomic.Bool

// confirmIDs sets idsAscend from the id of a program that was started since a moment.
func (m Moment) confirmIDs(pid int) {
	if !idsAscend.Load() && m.lastID > 0 && m.lastID < pid && pid <= lastID() {
		idsAscend.Store(true)
	}
}

// maxID returns the number of ids that the system gives before it starts again; 0 if unknown.
var maxID = sync.OnceValue(func() int {
	text, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(bytes.TrimSpace(text)))
	return n
})

// loadavg returns a descriptor of /proc/loadavg; -1 if it is not that of the kernel. Some
// containers show another file there.
var loadavg = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		unix.Close(fd)
		return -1
	}
	return fd
})

// lastID returns the id that the system gave last, to a process or thread; 0 if unknown.
func lastID() int {
	var b [128]byte
	n, err := unix.Pread(loadavg(), b[:], 0)
	if err != nil {
		return 0
	}
	line := bytes.TrimSpace(b[:n])
	last, err := strconv.Atoi(string(line[bytes.LastIndexByte(line, ' ')+1:]))
	if err != nil {
		return 0
	}
	return last
}

// isProcess reports whether an id is that of a process that has not been reaped, and not that of
// one of its further threads.
func isProcess(id int) bool { return unix.Tgkill(id, id, 0) != unix.ESRCH }
