package proc

import (
	"bytes"
	"os"
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
	marks  []string
	killed []int
	done   chan struct{} // closed when killed is counted
}

// sweeps lets those who come while a sweep goes on share the next one. Looking at
// every process takes milliseconds, and all trials of a run may end at once.
var sweeps struct {
	mu      sync.Mutex // guards the fields below
	next    *sweep     // nil when nobody waits
	running bool
}

// killMarked kills the processes whose environment holds a variable that begins
// with mark, this process aside, and returns how many there were. It works only
// upon those of the same user, whose environments can be read.
func killMarked(mark string) int {
	sweeps.mu.Lock()
	if sweeps.next == nil {
		sweeps.next = &sweep{done: make(chan struct{})}
	}
	mine, place := sweeps.next, len(sweeps.next.marks)
	mine.marks = append(mine.marks, mark)
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
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + name + "/environ")
		switch {
		case err != nil:
		case len(env) == 0: // a zombie, or one that has no environment, or none yet
			starting = starting || isStarting(name)
		default:
			found = s.killIfMarked(pid, env) || found
		}
	}
	return found, starting
}

func (s *sweep) killIfMarked(pid int, env []byte) bool {
	found := false
	for i, mark := range s.marks {
		if hasVariable(env, mark) {
			found = true
			if unix.Kill(pid, unix.SIGKILL) == nil {
				s.killed[i]++
			}
		}
	}
	return found
}

// isStarting reports whether a process is in the midst of an exec: it has the
// memory of the new program, but its environment is not in it yet.
func isStarting(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && statStarting(string(stat))
}

// Fields of /proc/PID/stat, counted from the one after the program's name, and
// flags of processes that have no memory and never get any.
const (
	statFlags  = 6
	statEnvEnd = 48

	flagExiting = 0x4
	flagKernel  = 0x200000
)

func statStarting(stat string) bool {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= statEnvEnd || fields[statEnvEnd] != "0" {
		return false
	}
	flags, err := strconv.ParseUint(fields[statFlags], 10, 64)
	return err == nil && flags&(flagExiting|flagKernel) == 0 && fields[0] != "Z" && fields[0] != "X"
}

// hasVariable reports whether a NUL-separated environment has a variable that
// begins with prefix. A prefix that ends in NUL matches a whole variable.
func hasVariable(env []byte, prefix string) bool {
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
