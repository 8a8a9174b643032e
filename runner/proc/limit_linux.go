package proc

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Every program is started with a number in its soft limit of file locks, which
// Linux does not enforce since 2.4.25. Descendants inherit it whatever they do to
// their session, parents, output and environment, and everybody may read it.
const (
	rlimitLocks = 10 // RLIMIT_LOCKS
	// countBits is how many bits of a number count the marks of one process.
	countBits = 30
)

var (
	limitBase  = (1<<32 + rand.Uint64N(1<<32)) << countBits
	limitCount atomic.Uint64

	// instanceLimit holds the numbers of this process.
	instanceLimit = limitRange{limitBase, limitBase | (1<<countBits - 1)}
)

// newLimit returns a number that no other mark has.
func newLimit() limitRange {
	n := limitBase | limitCount.Add(1)&(1<<countBits-1)
	return limitRange{n, n}
}

// starts is held while a program is started, because the limits of this process
// are those that the program inherits.
var starts sync.Mutex

// startWithLimit calls start while this process has the limit. Where it cannot be
// set, programs are marked by their environment only.
func startWithLimit(r limitRange, start func() error) error {
	starts.Lock()
	defer starts.Unlock()
	var before unix.Rlimit
	if r.first == 0 || unix.Getrlimit(rlimitLocks, &before) != nil {
		return start()
	}
	marked := unix.Rlimit{Cur: r.first, Max: before.Max}
	if r.first > before.Max || unix.Setrlimit(rlimitLocks, &marked) != nil {
		return start()
	}
	defer func() { _ = unix.Setrlimit(rlimitLocks, &before) }()
	return start()
}

// limitOf returns the number that a process carries; 0 for none.
func limitOf(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, rlimitLocks, nil, &limit) == nil { // a tenth of the time that the file takes
		return limit.Cur
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(data, []byte("\nMax file locks"))
	fields := bytes.Fields(rest[:min(len(rest), 64)])
	if !found || len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil { // unlimited
		return 0
	}
	return n
}
