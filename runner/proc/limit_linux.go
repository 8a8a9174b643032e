package proc

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Every program is started with a number in its soft limit of file locks, which Linux does not
// enforce since 2.4.25. Descendants inherit it, whatever they do to their session, parents,
// output and environment. Every process can read it.
const (
	rlimitLocks = 10 // RLIMIT_LOCKS
	// countBits is the number of bits that count the marks of one process.
	countBits = 30
)

var (
	limitBase  = (1<<32 + rand.Uint64N(1<<32)) << countBits
	limitCount atomic.Uint64

	// instanceLimit is the range of numbers of this process.
	instanceLimit = limitRange{limitBase, limitBase | (1<<countBits - 1)}
)

// newLimit returns an unused number.
func newLimit() limitRange {
	n := limitBase | limitCount.Add(1)&(1<<countBits-1)
	return limitRange{n, n}
}

// starts is held while a program is started, because the program inherits the limits of this
// process.
var starts sync.Mutex

// StartApart starts a program that is not part of a trial, such as a browser for the user. It
// waits while another program is started with a mark. Otherwise its program would inherit that
// mark and be killed with it.
func StartApart(cmd *exec.Cmd) error {
	starts.Lock()
	defer starts.Unlock()
	return cmd.Start()
}

// start calls a function that starts a program, while this process has the limit. Where the
// limit cannot be set, programs are marked only by their environment.
func (r limitRange) start(program func() error) error {
	starts.Lock()
	defer starts.Unlock()
	var before unix.Rlimit
	if r.first == 0 || unix.Getrlimit(rlimitLocks, &before) != nil {
		return program()
	}
	marked := unix.Rlimit{Cur: r.first, Max: before.Max}
	if r.first > before.Max || unix.Setrlimit(rlimitLocks, &marked) != nil {
		return program()
	}
	defer func() { _ = unix.Setrlimit(rlimitLocks, &before) }()
	return program()
}

// limitOf returns the number that a process carries; 0 for none.
func limitOf(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, rlimitLocks, nil, &limit) == nil { // ten times faster than reading the file
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
