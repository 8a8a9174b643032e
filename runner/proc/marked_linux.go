package proc

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxRounds bounds how often killMarked looks again for processes that were
	// forked while it killed their parents.
	maxRounds = 20
	// maxStarting bounds how often it looks again because some process had not
	// taken its environment yet, and startingPause is how long it waits before
	// that: there may be nothing left to do for anyone else.
	maxStarting   = 100
	startingPause = time.Millisecond
)

// sweep is a look at all processes for the marks of everybody who waits for one.
type sweep struct {
	marks  []mark
	killed []int
	// limited: some mark has a limit.
	limited bool
	since   uint64        // the least of the marks: what was started before is not looked at
	done    chan struct{} // closed when killed is counted
}

// sweeps lets those who come while a sweep goes on share the next one. Looking at
// every process takes milliseconds, and all trials of a run may end at once.
var sweeps struct {
	mu      sync.Mutex // guards the fields below
	next    *sweep     // nil when nobody waits
	running bool
}

// killMarked kills the processes that carry the mark, in their environment or as a
// limit, this process aside, and returns how many there were. It works only upon
// those of the same user.
func killMarked(m mark) int {
	sweeps.mu.Lock()
	if sweeps.next == nil {
		sweeps.next = &sweep{done: make(chan struct{})}
	}
	mine, place := sweeps.next, len(sweeps.next.marks)
	mine.marks = append(mine.marks, m)
	lead := !sweeps.running
	sweeps.running = true
	sweeps.mu.Unlock()
	if lead {
		runSweeps(mine)
	}
	<-mine.done
	return mine.killed[place]
}

// runSweeps does the sweep that is next, and hands over to whoever waits then.
func runSweeps(mine *sweep) {
	sweeps.mu.Lock()
	sweeps.next = nil
	sweeps.mu.Unlock()
	mine.run()
	close(mine.done)
	sweeps.mu.Lock()
	defer sweeps.mu.Unlock()
	if next := sweeps.next; next != nil {
		go runSweeps(next)
		return
	}
	sweeps.running = false
}

// run kills until there is nothing left to kill. A process that has just been
// started shows no environment for a moment, and is looked at again.
func (s *sweep) run() {
	s.killed = make([]int, len(s.marks))
	s.since = slices.MinFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.since, b.since) }).since
	s.limited = slices.ContainsFunc(s.marks, func(m mark) bool { return m.limit.first != 0 })
	starts := 0
	for rounds := 0; rounds < maxRounds; {
		found, starting := s.kill()
		switch {
		case found:
			rounds++
		case starting && starts < maxStarting:
			starts++
			time.Sleep(startingPause)
		default:
			return
		}
	}
}

// kill looks at every process once. starting says that it could not tell whose
// some process is, because that one is only now being started.
func (s *sweep) kill() (found, starting bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return false, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false, false
	}
	seen := make(map[int]known, len(environs))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || pid == guardPid() {
			continue
		}
		stat := readStat(name)
		fields := statFields(stat)
		if stat == "" || noMemory(fields) || startAt(fields) < s.since {
			continue
		}
		k, ok := environs[pid], false
		if k.program, ok = programOf(fields, k.program); !ok {
			env, err := os.ReadFile("/proc/" + name + "/environ")
			if err == nil && len(env) == 0 && startingAt(fields) {
				starting = true
			}
			k.marks = onlyMarks(env)
			ok = err == nil && len(env) > 0
		}
		if ok {
			seen[pid] = k
		}
		found = s.killIfMarked(pid, stat, k.marks) || found
	}
	environs = seen
	return found, starting
}

// known is what a look at a process found in its environment.
type known struct {
	program program
	marks   []byte // the variables that may be marks, each with a NUL before and after
}

// program distinguishes the programs that a process runs in turn: when it was started,
// and where in its memory its arguments and environment are, which differs with each
// program that it runs.
type program [3]string

// environs remembers the environments of processes from one look to the next: reading
// them is most of the work, and many runs may end at once. It belongs to the one sweep
// that is under way.
var environs map[int]known

// programOf returns what a process runs, and whether that is still the same.
func programOf(fields []string, was program) (now program, same bool) {
	if len(fields) <= statEnvEnd || fields[statEnvEnd] == "0" {
		return program{}, false
	}
	now = program{strings.Clone(fields[statStart]), strings.Clone(fields[statArgs]), strings.Clone(fields[statEnvEnd])}
	return now, now == was
}

// onlyMarks returns the variables of an environment that are waza's.
func onlyMarks(env []byte) []byte {
	var marks []byte
	for variable := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.HasPrefix(variable, []byte("WAZA_")) {
			marks = append(append(append(marks, 0), variable...), 0)
		}
	}
	return marks
}

func (s *sweep) killIfMarked(pid int, stat string, env []byte) bool {
	found, limit := false, uint64(0)
	if s.limited {
		limit = limitOf(pid)
	}
	for i, m := range s.marks {
		if (m.limit.holds(limit) || hasVariable(env, m.variable)) && !m.spares(pid, stat) {
			found = true
			if unix.Kill(pid, unix.SIGKILL) == nil {
				s.killed[i]++
			}
		}
	}
	return found
}

// readStat returns /proc/PID/stat, which one read takes; empty when it is gone.
func readStat(pid string) string {
	f, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(f)
	var b [4096]byte
	n, err := unix.Read(f, b[:])
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// dated says that the system dates the start of processes: some that only look like
// Linux do not.
var dated = sync.OnceValue(func() bool { return startOf(readStat("self")) > 0 })

// Now is the present; 0 where the system does not date the start of processes.
func Now() Moment {
	if !dated() {
		return 0
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	uptime, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(uptime, 64)
	if err != nil {
		return 0
	}
	return Moment(seconds * ticksPerSecond)
}

// spares reports whether a process that carries the mark is not to be killed.
func (m mark) spares(pid int, stat string) bool {
	if startOf(stat) < m.since {
		return true
	}
	if m.main == 0 {
		return false
	}
	for range maxAncestors {
		if pid == m.main {
			return true
		}
		fields := statFields(readStat(strconv.Itoa(pid)))
		if len(fields) <= statParent {
			return false
		}
		if pid, _ = strconv.Atoi(fields[statParent]); pid <= 1 {
			return false
		}
	}
	return true
}

// Fields of /proc/PID/stat, counted from the one after the program's name, and
// flags of processes that have no memory and never get any.
const (
	statParent = 1
	statFlags  = 6
	statStart  = 19
	statArgs   = 45
	statEnvEnd = 48

	ticksPerSecond = 100 // USER_HZ, which is the same on all architectures that Go has
	maxAncestors   = 1000

	flagExiting = 0x4
	flagKernel  = 0x200000
)

func statFields(stat string) []string {
	return strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
}

// startOf is when a process was started, in ticks since the system was.
func startOf(stat string) uint64 { return startAt(statFields(stat)) }

func startAt(fields []string) uint64 {
	if len(fields) <= statStart {
		return 0
	}
	start, _ := strconv.ParseUint(fields[statStart], 10, 64)
	return start
}

// noMemory reports whether a process has ended or is a thread of the kernel.
func noMemory(fields []string) bool {
	if len(fields) <= statFlags {
		return true
	}
	flags, err := strconv.ParseUint(fields[statFlags], 10, 64)
	return err != nil || flags&(flagExiting|flagKernel) != 0 || fields[0] == "Z" || fields[0] == "X"
}

// startingAt reports whether a process is within an exec: it has the
// memory of the new program, but its environment is not in it yet.
func startingAt(fields []string) bool {
	return len(fields) > statEnvEnd && fields[statEnvEnd] == "0" && !noMemory(fields)
}

// hasVariable reports whether a NUL-separated environment has a variable that
// begins with prefix. A prefix that ends in NUL matches a whole variable.
func hasVariable(env []byte, prefix string) bool {
	if prefix == "" {
		return false
	}
	for at := 0; ; {
		i := bytes.Index(env[at:], []byte(prefix))
		if i < 0 {
			return false
		}
		at += i
		if at == 0 || env[at-1] == 0 {
			return true
		}
		at++
	}
}
