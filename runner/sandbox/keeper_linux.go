package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/handover"
	"waza/runner/sandbox/internal/pids"
)

// A keeper is a process in namespaces of its own that starts one program after the other for
// another process, which it reaches through a socket. It is the first process of its process
// namespace, so the kernel ends everything that it started when it ends; it ends when the other
// process ends. Between two programs nothing is left: the keeper kills and reaps all processes,
// and each program has a mount namespace and an IPC namespace of its own.
//
//	waza ── socket ──► keeper (pid 1) ── a thread per program: mounts, restrictions ──► program
type keeper struct {
	conn *net.UnixConn

	mu      sync.Mutex // guards the fields below
	pid     int        // of the running program; 0 for none
	limits  Limits
	ended   chan struct{} // closed when the program has ended; nil without a program
	reached string        // the limit that it exceeded
}

// keeperMain is the main function of a keeper.
func keeperMain() {
	// Threads that restrict themselves must end, which the first thread of a process cannot.
	runtime.LockOSThread()
	debug.SetGCPercent(400)
	// Notify rather than Ignore keeps the default handling in programs.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTSTP, unix.SIGUSR1, unix.SIGUSR2)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // no program can read its memory
	CloseInherited()
	err := keep()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
	os.Exit(0) // the kernel ends everything else
}

func keep() error {
	conn, err := handover.ConnOf(os.NewFile(3, "waza"))
	if err != nil {
		return err
	}
	k := &keeper{conn: conn}
	setup, names := prepare(), os.Args[2:]
	if setup == nil && len(names) > 0 && names[0] == "isolated" {
		setup = loopbackUp()
	}
	if err := k.answer(setup); err != nil {
		return err
	}
	for {
		var r request
		files, _, err := handover.Receive(conn, &r)
		if err != nil {
			handover.CloseAll(files)
			return nil // the other process has ended
		}
		if err := k.serve(&r, files); err != nil {
			return err
		}
	}
}

// prepare makes the mounts of the machine private, so that mounts of the keeper stay inside, and
// shows the keeper its own processes.
func prepare() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step("private mounts", err)
	}
	return step(stepProc, unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
}

// loopbackUp starts the only network interface of an isolated sandbox.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return step("loopback", err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return step("loopback", err)
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return step("loopback", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r))
}

// answer sends the result of a request.
func (k *keeper) answer(err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answerLocked(err)
}

func (k *keeper) answerLocked(err error) error {
	r := reply{}
	if err != nil {
		r.Fault = err.Error()
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			r.Errno = int(errno)
		}
	}
	return handover.Send(k.conn, &r)
}

func (k *keeper) serve(r *request, files []*os.File) error {
	defer handover.CloseAll(files)
	switch {
	case r.Kill:
		killAll()
		return nil
	case r.Start != nil:
		return k.start(r.Start, files)
	}
	return k.answer(errors.New("unknown request"))
}

// start starts a program and answers in its name.
func (k *keeper) start(r *startRequest, files []*os.File) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	type result struct {
		pid int
		err error
	}
	sockets, err := handover.Listen(r.Listen)
	defer handover.CloseAll(sockets)
	if err != nil {
		return k.answerLocked(step("sockets of the proxy", err))
	}
	reserveThreads()
	capProcesses(r.Limits.Processes)
	done := make(chan result)
	restore := setMark(r.Mark) // not on the thread, which must not change the mark again
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		var res result
		res.pid, res.err = launch(r, files)
		done <- res
	}()
	res := <-done
	restore()
	if res.err != nil || res.pid == 0 {
		return k.answerLocked(res.err)
	}
	k.pid, k.limits, k.reached, k.ended = res.pid, r.Limits, "", make(chan struct{})
	err = handover.SendFrom(res.pid, k.conn, &reply{}, handover.Numbers(sockets)...) // before reap, so that the process still exists
	go k.reap(res.pid, k.ended)
	if r.Limits.Memory > 0 || r.Limits.Processes > 0 {
		go k.watch(k.ended)
	}
	if r.Limits.Disk > 0 && len(r.Counted) > 0 {
		go k.watchDisk(r.Counted, r.Limits.Disk, k.ended)
	}
	return err
}

// launch restricts the calling thread, which must end afterwards, and starts a program on it. An
// empty path starts none, to see whether this machine allows the rest.
func launch(r *startRequest, files []*os.File) (pid int, err error) {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	if err := enterRoot(r.Mounts); err != nil {
		return 0, err
	}
	for _, restrict := range []func() error{
		dropCapabilities, noNewPrivileges, func() error { return restrictInside(r.Roots) }, filterCalls,
	} {
		if err := restrict(); err != nil {
			return 0, err
		}
	}
	if r.Path == "" {
		return 0, nil
	}
	if _, err := os.Stat(r.Dir); err != nil {
		return 0, errors.New("its working directory is not visible in the sandbox: " + r.Dir + "; add it to config.sandbox.read")
	}
	attr := syscall.ProcAttr{Dir: r.Dir, Env: r.Env, Files: fds, Sys: &syscall.SysProcAttr{Setpgid: true, Ptrace: r.Limits != Limits{}}}
	for pause := time.Millisecond; ; pause *= 2 {
		pid, err = syscall.ForkExec(r.Path, r.Args, &attr)
		if !errors.Is(err, syscall.ETXTBSY) || pause > 128*time.Millisecond {
			break
		}
		time.Sleep(pause) // see startProgram of package proc
	}
	if err == nil && attr.Sys.Ptrace {
		err = limitStopped(pid, r.Limits)
	}
	return pid, err
}

// limitStopped sets the limits of a process that the calling thread traces, before its first
// instruction, and lets it go.
func limitStopped(pid int, l Limits) error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return step("limits", err)
		}
	}
	if !status.Stopped() {
		return errors.New("the program was ended at its start")
	}
	limit(pid, l)
	return step("limits", unix.PtraceDetach(pid))
}

// restrictInside restricts what programs can change, where the machine has Landlock.
func restrictInside(roots []string) error {
	if landlockVersion() == 0 {
		return nil
	}
	return restrictFiles(nil, roots)
}

// setMark sets the soft limit of file locks, which the next program inherits. restore takes it
// back.
func setMark(mark uint64) (restore func()) {
	var before unix.Rlimit
	if mark == 0 || unix.Getrlimit(proc.LimitOfLocks, &before) != nil {
		return func() {}
	}
	_ = unix.Setrlimit(proc.LimitOfLocks, &unix.Rlimit{Cur: min(mark, before.Max), Max: before.Max})
	return func() { _ = unix.Setrlimit(proc.LimitOfLocks, &before) }
}

// limit sets the limits of a process. The keeper cannot take on the limits
// itself and pass them on, because it could not raise them again.
func limit(pid int, l Limits) {
	threads, _ := usageOf("self")
	for _, r := range []struct {
		resource int
		most     int64
	}{
		{unix.RLIMIT_DATA, l.Memory}, {unix.RLIMIT_FSIZE, l.Disk}, {unix.RLIMIT_NOFILE, l.Files}, {unix.RLIMIT_NPROC, l.Processes + threads},
	} {
		var now unix.Rlimit
		if r.most <= 0 || unix.Prlimit(pid, r.resource, nil, &now) != nil {
			continue
		}
		most := min(uint64(r.most), now.Max)
		_ = unix.Prlimit(pid, r.resource, &unix.Rlimit{Cur: min(most, now.Cur), Max: most}, nil)
	}
}

// capProcesses bounds the process ids of the sandbox, because RLIMIT_NPROC does not bind root, and
// a bomb can fill the table of the machine before watch sees it.
func capProcesses(most int64) {
	if limit, ok := pids.Max(most); ok {
		_ = os.WriteFile(pids.File, []byte(strconv.FormatInt(limit, 10)), 0)
	}
}

// ownThreads are more than a keeper with keeperProcessors uses at the same time: one for each
// processor, and one for each call of the system that waits.
const ownThreads = 16

// reserveThreads starts the threads that the keeper can need while a program runs. Programs can use
// up the process ids of the sandbox, and the Go runtime aborts when it cannot start a thread. It keeps
// idle threads; only those of launch end, one for each program, so it starts some more at once.
func reserveThreads() {
	if threads, _ := usageOf("self"); threads >= ownThreads {
		return
	}
	var ready sync.WaitGroup
	release := make(chan struct{})
	for range ownThreads + ownThreads/2 {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // keeps the thread
			ready.Done()
			<-release
		}()
	}
	ready.Wait()
	close(release)
}

// reap reaps processes until the program has ended, kills what it left, and reports the end.
func (k *keeper) reap(program int, ended chan struct{}) {
	var status unix.WaitStatus
	for {
		var s unix.WaitStatus
		pid, err := unix.Wait4(-1, &s, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == program {
			status = s
			break
		}
	}
	killAll() // once is enough, because a process with a deadly signal cannot fork
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(ended)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pid = 0
	_ = handover.Send(k.conn, &reply{Ended: true, Status: status, Exceeded: k.reached})
}

// killAll kills every process of the sandbox except the keeper.
func killAll() { _ = unix.Kill(-1, unix.SIGKILL) }

// watchEvery is the pause between two looks at what a program uses.
const watchEvery = 100 * time.Millisecond

// watch ends the program when it and its descendants use more than their limits together.
func (k *keeper) watch(ended chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if reached := k.limits.exceeded(); reached != "" {
			k.stop(reached, ended)
			return
		}
	}
}

// stop ends the program, which has exceeded a limit.
func (k *keeper) stop(reached string, ended chan struct{}) {
	k.mu.Lock()
	k.reached = reached
	k.mu.Unlock()
	for { // without a pause, because processes start in the meantime
		killAll()
		select {
		case <-ended:
			return
		default:
		}
	}
}

// exceeded names the limit that the processes of the sandbox, without the keeper, exceed together;
// empty for none. It stops there, because processes can start faster than they are counted.
func (l Limits) exceeded() string {
	dir, err := os.Open("/proc")
	if err != nil {
		return ""
	}
	defer dir.Close()
	var threads, memory int64
	for {
		names, err := dir.Readdirnames(64)
		for _, name := range names {
			if _, err := strconv.Atoi(name); err != nil || name == "1" {
				continue
			}
			t, m := usageOf(name)
			threads, memory = threads+t, memory+m
			switch {
			case l.Processes > 0 && threads > l.Processes:
				return fmt.Sprintf("it has more than %d processes and threads, its limit (config.sandbox.limits.processes)", l.Processes)
			case l.Memory > 0 && memory > l.Memory:
				return fmt.Sprintf("it uses more than %d bytes of memory, its limit (config.sandbox.limits.memory)", l.Memory)
			}
		}
		if err != nil {
			return ""
		}
	}
}

// Fields of /proc/PID/stat, counted from the one after the program's name.
const (
	statThreads  = 17
	statResident = 21
)

// usageOf returns the number of threads and the memory of a process, in bytes.
func usageOf(pid string) (threads, memory int64) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= statResident {
		return 0, 0
	}
	threads, _ = strconv.ParseInt(fields[statThreads], 10, 64)
	memory, _ = strconv.ParseInt(fields[statResident], 10, 64)
	return threads, memory * int64(os.Getpagesize())
}
