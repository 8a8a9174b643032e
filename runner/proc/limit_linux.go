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
// output and environment. Every process can read it. The lowest bit of the number is set for
// programs in a sandbox, which keeps them from changing it.
const (
	// countBits is the number of bits that count the marks of one process, with the lowest bit.
	countBits = 30
	// numberBit is set in all numbers, and no higher one is.
	numberBit = 62
)

var (
	limitBase  = 1<<numberBit | rand.Uint64N(1<<(numberBit-countBits))<<countBits
	limitCount atomic.Uint64

	// instanceLimit is the range of numbers of this process.
	instanceLimit = limitRange{limitBase, limitBase | (1<<countBits - 1)}
)

// newLimit returns two unused numbers: one for programs without a sandbox, and one for the others.
func newLimit() limitRange {
	n := limitBase | limitCount.Add(2)&(1<<countBits-1)
	return limitRange{n, n | 1}
}

// Sandboxed returns the processes of this machine, in any order, that run in sandboxes which keep
// them from denying it: those of Linux namespaces and of Landlock, of every user and every waza. It
// leaves out the sandbox that this process itself is in.
func Sandboxed() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && IsSandboxed(pid) {
			list = append(list, pid)
		}
	}
	return list, nil
}

// IsSandboxed reports whether [Sandboxed] lists a process.
func IsSandboxed(pid int) bool {
	n := limitOf(pid)
	if n>>numberBit != 1 || n&1 == 0 || n == ownNumber {
		return false
	}
	// A process that starts a program carries its number for a moment.
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && bytes.Contains(status, []byte("\nNoNewPrivs:\t1\n"))
}

// ownNumber is the number with which this process was started; 0 for none.
var ownNumber = limitOf(os.Getpid())

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

// startNumbered calls a function that starts a program, while this process has the limit with this number.
// Where the limit cannot be set, programs are marked only by their environment.
func startNumbered(number uint64, program func() error) error {
	starts.Lock()
	defer starts.Unlock()
	var before unix.Rlimit
	if number == 0 || unix.Getrlimit(LimitOfLocks, &before) != nil {
		return program()
	}
	marked := unix.Rlimit{Cur: number, Max: before.Max}
	if number > before.Max || unix.Setrlimit(LimitOfLocks, &marked) != nil {
		return program()
	}
	defer func() { _ = unix.Setrlimit(LimitOfLocks, &before) }()
	return program()
}

// limitOf returns the number that a process carries; 0 for none.
func limitOf(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, LimitOfLocks, nil, &limit) == nil { // ten times faster than reading the file
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
