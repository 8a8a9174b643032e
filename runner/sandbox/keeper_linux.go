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
	err := keep()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
	os.Exit(0) // the kernel ends everything else
}

func keep() error {
	conn, err := socketOf(os.NewFile(3, "waza"))
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
		files, _, err := receive(conn, &r)
		if err != nil {
			closeAll(files)
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
	return send(k.conn, &r)
}

func (k *keeper) serve(r *request, files []*os.File) error {
	defer closeAll(files)
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
	sockets, err := listen(r.Listen)
	defer closeAll(sockets)
	if err != nil {
		return k.answerLocked(step("sockets of the proxy", err))
	}
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
	limit(res.pid, r.Limits)
	k.pid, k.limits, k.reached, k.ended = res.pid, r.Limits, "", make(chan struct{})
	err = sendFrom(res.pid, k.conn, &reply{}, numbers(sockets)...) // before reap, so that the process still exists
	go k.reap(res.pid, k.ended)
	if r.Limits.Memory > 0 || r.Limits.Processes > 0 {
		go k.watch(k.ended)
	}
	return err
}

// listen opens sockets. The caller closes them, also after an error.
func listen(addresses []string) (sockets []*os.File, err error) {
	for _, a := range addresses {
		network, address, _ := strings.Cut(a, ":")
		var socket interface{ File() (*os.File, error) }
		if network == "udp" {
			addr, rerr := net.ResolveUDPAddr(network, address)
			if rerr != nil {
				return sockets, rerr
			}
			c, lerr := net.ListenUDP(network, addr)
			if lerr != nil {
				return sockets, lerr
			}
			defer c.Close()
			socket = c
		} else {
			l, lerr := net.Listen("tcp4", address)
			if lerr != nil {
				return sockets, lerr
			}
			defer l.Close()
			socket = l.(*net.TCPListener)
		}
		f, err := socket.File()
		if err != nil {
			return sockets, err
		}
		sockets = append(sockets, f)
	}
	return sockets, nil
}

func numbers(files []*os.File) []int {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return fds
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
	attr := syscall.ProcAttr{Dir: r.Dir, Env: r.Env, Files: fds, Sys: &syscall.SysProcAttr{Setpgid: true}}
	for pause := time.Millisecond; ; pause *= 2 {
		pid, err = syscall.ForkExec(r.Path, r.Args, &attr)
		if !errors.Is(err, syscall.ETXTBSY) || pause > 128*time.Millisecond {
			return pid, err
		}
		time.Sleep(pause) // see startProgram of package proc
	}
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
	if mark == 0 || unix.Getrlimit(rlimitLocks, &before) != nil {
		return func() {}
	}
	_ = unix.Setrlimit(rlimitLocks, &unix.Rlimit{Cur: min(mark, before.Max), Max: before.Max})
	return func() { _ = unix.Setrlimit(rlimitLocks, &before) }
}

// limit sets the limits of a process that has just started. The keeper cannot take on the limits
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
	for {
		killAll()
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(ended)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pid = 0
	_ = send(k.conn, &reply{Ended: true, Status: status, Exceeded: k.reached})
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
		processes, memory := usage()
		reached := ""
		switch {
		case k.limits.Processes > 0 && processes > k.limits.Processes:
			reached = fmt.Sprintf("it has %d processes and threads; the limit is %d (config.sandbox.limits.processes)", processes, k.limits.Processes)
		case k.limits.Memory > 0 && memory > k.limits.Memory:
			reached = fmt.Sprintf("it uses %d bytes of memory; the limit is %d (config.sandbox.limits.memory)", memory, k.limits.Memory)
		default:
			continue
		}
		k.mu.Lock()
		k.reached = reached
		k.mu.Unlock()
		killAll()
	}
}

// usage counts the processes and threads of the sandbox and their memory in bytes, without the
// keeper.
func usage() (processes, memory int64) {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0, 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if _, err := strconv.Atoi(name); err == nil && name != "1" {
			n, m := usageOf(name)
			processes, memory = processes+n, memory+m
		}
	}
	return processes, memory
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
