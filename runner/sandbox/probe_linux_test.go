package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	probes["calls"] = probeCalls
	probes["memory"] = probeMemory
	probes["dial"] = probeDial
	probes["get"] = probeGet
}

// high is a bit of an argument that the kernel ignores for an int.
const high = 1 << 32

// probeCalls makes system calls that are refused, one line each.
func probeCalls() {
	runtime.LockOSThread()
	var limit unix.Rlimit
	pointer := uintptr(unsafe.Pointer(&limit))
	const locks = 10
	_ = unix.Prlimit(0, locks, nil, &limit)
	for _, c := range []struct {
		name string
		call [7]uintptr
	}{
		{"unshare", [7]uintptr{unix.SYS_UNSHARE, unix.CLONE_NEWUSER}},
		{"clone", [7]uintptr{unix.SYS_CLONE, unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
		{"clone3", [7]uintptr{unix.SYS_CLONE3}},
		{"setns", [7]uintptr{unix.SYS_SETNS}},
		{"mount", [7]uintptr{unix.SYS_MOUNT}},
		{"umount2", [7]uintptr{unix.SYS_UMOUNT2}},
		{"fsopen", [7]uintptr{unix.SYS_FSOPEN}},
		{"move_mount", [7]uintptr{unix.SYS_MOVE_MOUNT}},
		{"pivot_root", [7]uintptr{unix.SYS_PIVOT_ROOT}},
		{"chroot", [7]uintptr{unix.SYS_CHROOT}},
		{"bpf", [7]uintptr{unix.SYS_BPF}},
		{"keyctl", [7]uintptr{unix.SYS_KEYCTL}},
		{"io_uring_setup", [7]uintptr{unix.SYS_IO_URING_SETUP}},
		{"perf_event_open", [7]uintptr{unix.SYS_PERF_EVENT_OPEN}},
		{"open_by_handle_at", [7]uintptr{unix.SYS_OPEN_BY_HANDLE_AT}},
		{"userfaultfd", [7]uintptr{unix.SYS_USERFAULTFD}},
		{"TIOCSTI", [7]uintptr{unix.SYS_IOCTL, 0, unix.TIOCSTI}},
		{"TIOCSTI high", [7]uintptr{unix.SYS_IOCTL, 0, unix.TIOCSTI | high}},
		{"TIOCLINUX", [7]uintptr{unix.SYS_IOCTL, 0, unix.TIOCLINUX}},
		{"setrlimit locks", [7]uintptr{unix.SYS_SETRLIMIT, locks, pointer}},
		{"setrlimit locks high", [7]uintptr{unix.SYS_SETRLIMIT, locks | high, pointer}},
		{"prlimit locks", [7]uintptr{unix.SYS_PRLIMIT64, 0, locks, pointer}},
		{"prlimit locks high", [7]uintptr{unix.SYS_PRLIMIT64, 0, locks | high, pointer}},
	} {
		_, _, errno := unix.RawSyscall6(c.call[0], c.call[1], c.call[2], c.call[3], c.call[4], c.call[5], c.call[6])
		fmt.Printf("%s: %s\n", c.name, unix.ErrnoName(errno))
	}
	runtime.KeepAlive(&limit)
}

// probeMemory takes memory until it is ended, at most 1 GiB.
func probeMemory() {
	var taken [][]byte
	for range 1 << 10 {
		taken = append(taken, make([]byte, 1<<20))
		for i := 0; i < 1<<20; i += 4096 {
			taken[len(taken)-1][i] = 1
		}
	}
	fmt.Println("took it all", len(taken))
}

// probeDial connects to the address in ADDRESS.
func probeDial() {
	c, err := net.DialTimeout("tcp", os.Getenv("ADDRESS"), 10*time.Second)
	var refused *net.OpError
	if errors.As(err, &refused) {
		fmt.Println("no connection")
		return
	}
	fmt.Println("connected")
	c.Close()
}

// probeGet requests the URLs of URLS by the proxy of its environment.
func probeGet() {
	for target := range strings.FieldsSeq(os.Getenv("URLS")) {
		request, _ := http.NewRequest(http.MethodGet, target, nil)
		proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
		if err != nil {
			fmt.Println(err)
			continue
		}
		answer, err := (&http.Transport{Proxy: http.ProxyURL(proxy)}).RoundTrip(request)
		if err != nil {
			fmt.Println(err)
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		answer.Body.Close()
		fmt.Println(answer.StatusCode, strings.TrimSpace(string(body)))
	}
}
