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
	// maxRounds limits how often mark.kill repeats its search for processes that were forked
	// while it killed their parents.
	maxRounds = 20
	// maxStarting limits how often it repeats the search because the environment of a starting
	// process was not readable yet. startingPause is the first pause before that; there may be nothing
	// left to kill. Pauses grow to twenty times this, because a process can wait for a busy processor for
	// long: all together take about two seconds.
	maxStarting   = 200
	startingPause = time.Millisecond
)

// sweep is one search of processes for several marks.
type sweep struct {
	marks  []mark
	killed []int
	// limited reports whether some mark has a limit.
	limited bool
	since   uint64        // the earliest start time of the marks: processes that started before it are ignored
	done    chan struct{} // closed when killed is complete
}

// sweeps lets callers that arrive during a sweep share the next one. Checking every process
// takes milliseconds, and all trials of a run may end at the same time.
var sweeps struct {
	mu      sync.Mutex // guards the fields below
	next    *sweep     // nil when nobody waits
	running bool
}

// kill kills the processes that carry the mark, in their environment or as a limit, except
// this process, and returns their number. It affects only processes of the same user.
func (m mark) kill() int {
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
		mine.lead()
	}
	<-mine.done
	return mine.killed[place]
}

// lead executes a sweep, then starts the next one if callers wait for it.
func (s *sweep) lead() {
	sweeps.mu.Lock()
	sweeps.next = nil
	sweeps.mu.Unlock()
	s.run()
	close(s.done)
	sweeps.mu.Lock()
	defer sweeps.mu.Unlock()
	if next := sweeps.next; next != nil {
		go next.lead()
		return
	}
	sweeps.running = false
}

// run kills processes until none is left. A process that has just started has no readable
// environment for a moment, and is checked again.
func (s *sweep) run() {
	s.killed = make([]int, len(s.marks))
	s.since = slices.MinFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.since.ticks, b.since.ticks) }).since.ticks
	s.limited = slices.ContainsFunc(s.marks, func(m mark) bool { return m.limit.first != 0 })
	starts := 0
	for rounds := 0; rounds < maxRounds; {
		seen, ok := s.checkRecent()
		if !ok {
			seen = s.checkAll()
		}
		switch {
		case seen.killed:
			rounds++
		case seen.starting && starts < maxStarting:
			time.Sleep(startingPause * time.Duration(1+starts/10))
			starts++
		default:
			return
		}
	}
}

// findings are what one round of a sweep found.
type findings struct {
	killed   bool // some process was killed
	starting bool // some process is still starting, so its owner is not known yet
}

func (f findings) or(g findings) findings {
	return findings{killed: f.killed || g.killed, starting: f.starting || g.starting}
}

// checkAll checks every process once.
func (s *sweep) checkAll() (all findings) {
	dir, err := os.Open("/proc")
	if err != nil {
		return findings{}
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return findings{}
	}
	self, guard := os.Getpid(), guardPid()
	seen := make(map[int]known, len(environs))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self || pid == guard {
			continue
		}
		all = all.or(s.check(pid, environs, seen))
	}
	environs = seen
	return all
}

// checkRecent checks the processes that were started since the moments of the marks. It tries
// their ids one after the other, because listing all processes takes much longer. It also checks
// processes that start in the meantime, so that none can hide by replacing itself. It reports
// false if the ids are not known or too many.
func (s *sweep) checkRecent() (all findings, ok bool) {
	if len(environs) > maxRecent {
		clear(environs)
	}
	self, guard := os.Getpid(), guardPid()
	checked := slices.MinFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.since.lastID, b.since.lastID) }).since.lastID
	for {
		last := lastID()
		if last < checked || slices.ContainsFunc(s.marks, func(m mark) bool { return !m.since.knowsIDs(last) }) {
			return all, false
		}
		if last == checked {
			return all, true
		}
		for pid := checked + 1; pid <= last; pid++ {
			if pid != self && pid != guard && isProcess(pid) {
				all = all.or(s.check(pid, environs, environs))
			}
		}
		checked = last
	}
}

// check kills a process if it has a mark. It adds what it found in the environment of the process
// to now, and need not read it again if it is in before.
func (s *sweep) check(pid int, before, now map[int]known) findings {
	stat := readStat(strconv.Itoa(pid))
	fields := statFields(stat)
	if stat == "" || noMemory(fields) || startAt(fields) < s.since {
		return findings{}
	}
	var f findings
	k, ok := before[pid], false
	if k.program, ok = programOf(fields, k.program); !ok {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		f.starting = err == nil && len(env) == 0 && startingAt(fields)
		k.marks = onlyMarks(env)
		ok = err == nil && len(env) > 0
	}
	if ok {
		now[pid] = k
	}
	f.killed = s.killIfMarked(pid, stat, k.marks)
	return f
}

// known is what a sweep found in the environment of a process.
type known struct {
	program program
	marks   []byte // the variables that may be marks, each with a NUL before and after
}

// program distinguishes the programs that a process runs in turn. It contains the start time of
// the process and the addresses of its arguments and environment, which change with each exec.
type program [3]string

// environs caches the environments of processes between sweeps. Reading them is most of the
// work, and many runs may end at once. Only the running sweep uses it. Checking all processes
// removes those that have ended, and checkRecent forgets all when there are many.
var environs = map[int]known{}

// programOf returns the program that a process runs, and whether it is still the same as was.
func programOf(fields []string, was program) (now program, same bool) {
	if len(fields) <= statEnvEnd || fields[statEnvEnd] == "0" {
		return program{}, false
	}
	now = program{strings.Clone(fields[statStart]), strings.Clone(fields[statArgs]), strings.Clone(fields[statEnvEnd])}
	return now, now == was
}

// onlyMarks returns the variables of an environment that belong to waza.
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
		if (m.limit.holds(limit) || hasVariable(env, m.variable)) && !hasVariable(env, m.sparing) && !m.spares(pid, stat) {
			found = true
			if unix.Kill(pid, unix.SIGKILL) == nil {
				s.killed[i]++
			}
		}
	}
	return found
}

// readStat returns /proc/PID/stat, using one read; empty when the process has ended.
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

// spares reports whether a process that carries the mark must not be killed.
func (m mark) spares(pid int, stat string) bool {
	if startOf(stat) < m.since.ticks {
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

// Fields of /proc/PID/stat, counted from the one after the program's name, and flags of
// processes that never have memory.
const (
	statParent = 1
	statFlags  = 6
	statStart  = 19
	statArgs   = 45
	statEnvEnd = 48

	maxAncestors = 1000

	flagExiting = 0x4
	flagKernel  = 0x200000
)

func statFields(stat string) []string {
	return strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
}

// startOf returns the start time of a process, in ticks since the system booted.
func startOf(stat string) uint64 { return startAt(statFields(stat)) }

func startAt(fields []string) uint64 {
	if len(fields) <= statStart {
		return 0
	}
	start, _ := strconv.ParseUint(fields[statStart], 10, 64)
	return start
}

// noMemory reports whether a process has ended or is a kernel thread.
func noMemory(fields []string) bool {
	if len(fields) <= statFlags {
		return true
	}
	flags, err := strconv.ParseUint(fields[statFlags], 10, 64)
	return err != nil || flags&(flagExiting|flagKernel) != 0 || fields[0] == "Z" || fields[0] == "X"
}

// startingAt reports whether a process is within an exec: it has the memory of the new program,
// but not its environment yet.
func startingAt(fields []string) bool {
	return len(fields) > statEnvEnd && fields[statEnvEnd] == "0" && !noMemory(fields)
}

// hasVariable reports whether a NUL-separated environment contains a variable that starts with
// prefix. A prefix that ends in NUL matches a whole variable.
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
