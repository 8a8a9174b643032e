package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// The guard is a second process that outlives this one for a moment. It reads "+pgid" and
// "-pgid" lines, the directory of control groups, the mark of this process and its limits. At
// end of file, which comes however this process ends, it kills the remaining groups and every
// marked process.
var guard struct {
	command func() *exec.Cmd // set by UseGuard before any program is started
	once    sync.Once

	mu  sync.Mutex // guards the fields below
	w   io.Writer  // nil when there is no guard
	pid int
}

// guardPid returns the guard's process id; 0 without a guard.
func guardPid() int {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	return guard.pid
}

// UseGuard makes the first started program also start a guard. command returns a process that
// calls [Guard] with its standard input. Call UseGuard before any program is started. Without it
// there is no guard.
func UseGuard(command func() *exec.Cmd) { guard.command = command }

func startGuard() {
	guard.once.Do(func() {
		if guard.command == nil {
			return
		}
		cmd := guard.command()
		cmd.SysProcAttr = groupAttr()
		in, err := cmd.StdinPipe()
		if err != nil {
			return
		}
		if err := startNumbered(0, cmd.Start); err != nil {
			return // the other mechanisms still work
		}
		go func() { _ = cmd.Wait() }()
		guard.mu.Lock()
		defer guard.mu.Unlock()
		guard.w, guard.pid = in, cmd.Process.Pid
		fmt.Fprintln(in, instanceMark)
		if dir := cgroupDir(); dir != "" {
			fmt.Fprintln(in, dir)
		}
		fmt.Fprintf(in, "#%d-%d\n", instanceLimit.first, instanceLimit.last)
	})
}

func guardGroup(sign byte, pgid int) {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if guard.w != nil {
		fmt.Fprintf(guard.w, "%c%d\n", sign, pgid)
	}
}

// Guard is the main program of the guard. It reads r to its end and then kills the processes
// that the writer left running.
func Guard(r io.Reader) {
	groups := map[int]bool{}
	var m mark
	cgroups := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			continue
		}
		switch pgid, err := strconv.Atoi(line[1:]); {
		case line[0] == '+' && err == nil:
			groups[pgid] = true
		case line[0] == '-' && err == nil:
			delete(groups, pgid)
		case line[0] == '#':
			if n, err := fmt.Sscanf(line, "#%d-%d", &m.limit.first, &m.limit.last); n != 2 || err != nil {
				m.limit = limitRange{}
			}
		case line[0] == '/':
			cgroups = line
		default:
			m.variable = line
		}
	}
	for pgid := range groups {
		if pgid > 1 && pgid != os.Getpid() {
			killGroup(pgid)
		}
	}
	if cgroups != "" {
		endCgroup(cgroups)
	}
	if m != (mark{}) {
		m.kill()
	}
}
