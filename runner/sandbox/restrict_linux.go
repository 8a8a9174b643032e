package sandbox

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/calls"
)

// dropCapabilities takes all capabilities from the calling thread. With no_new_privs, that is for
// good.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EPERM) {
			break // no_new_privs keeps a thread without capabilities from getting any
		}
		if err != nil && !errors.Is(err, unix.EINVAL) {
			return step("capabilities", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return step("capabilities", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return step("capabilities", unix.Capset(&header, &none[0]))
}

// noNewPrivileges keeps the calling thread and its descendants from getting privileges by
// starting programs.
func noNewPrivileges() error {
	return step("no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

// filter returns the program of the system call filter for this machine's architecture.
var filter = sync.OnceValues(func() ([]unix.SockFilter, error) {
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionErrno, Names: slices.Clone(calls.Denied)},
			{Action: seccomp.ActionErrno, NamesWithCondtions: []seccomp.NameWithConditions{
				{Name: "ioctl", Conditions: lower(1, unix.TIOCSTI)},
				{Name: "ioctl", Conditions: lower(1, unix.TIOCLINUX)},
				{Name: "setrlimit", Conditions: lower(0, proc.LimitOfLocks)},
				{Name: "prlimit64", Conditions: append(lower(1, proc.LimitOfLocks), seccomp.Condition{Argument: 2, Operation: seccomp.NotEqual, Value: 0})},
			}},
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
		},
	}
	for bit := uint64(1); bit <= calls.NamespaceFlags; bit <<= 1 {
		if bit&calls.NamespaceFlags != 0 {
			policy.Syscalls[1].NamesWithCondtions = append(policy.Syscalls[1].NamesWithCondtions, seccomp.NameWithConditions{
				Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: bit}},
			})
		}
	}
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	for i := range policy.Syscalls {
		g := &policy.Syscalls[i]
		g.Names = slices.DeleteFunc(g.Names, func(name string) bool { return !has(machine, name) })
		g.NamesWithCondtions = slices.DeleteFunc(g.NamesWithCondtions, func(n seccomp.NameWithConditions) bool { return !has(machine, n.Name) })
	}
	list, err := policy.Assemble()
	if err != nil {
		return nil, err
	}
	// The policy allows all calls of other architectures, such as 32-bit calls on x86-64.
	list = append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.EPERM)},
	}, list...)
	raw, err := bpf.Assemble(list)
	if err != nil {
		return nil, err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return program, nil
})

// lower returns the conditions that the lower 32 bits of an argument are value. The kernel ignores
// the rest of an int, so a program could set a bit there to avoid a comparison of the whole.
func lower(argument, value uint32) seccomp.ArgumentConditions {
	list := seccomp.ArgumentConditions{{Argument: argument, Operation: seccomp.BitsNotSet, Value: uint64(^value)}}
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if value&bit != 0 {
			list = append(list, seccomp.Condition{Argument: argument, Operation: seccomp.BitsSet, Value: uint64(bit)})
		}
	}
	return list
}

// archOffset is the place of the architecture in what a filter sees, see seccomp(2).
const archOffset = 4

func has(machine *arch.Info, name string) bool {
	_, ok := machine.SyscallNames[name]
	return ok
}

// filterCalls restricts the system calls of the calling thread. no_new_privs must be set.
func filterCalls() error {
	list, err := filter()
	if err != nil {
		return step("seccomp", err)
	}
	program := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	if _, _, errno := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return step("seccomp", errno)
	}
	return nil
}

// landlockVersion returns the version of Landlock that this machine has; 0 for none.
var landlockVersion = sync.OnceValue(func() int {
	n, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
})

// The rights of Landlock, see landlock(7).
const (
	rightsToRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsToWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// restrictFiles restricts the calling thread: it can read below some paths, and change files
// below others. An empty list of readable paths means that it can read everything that it sees.
// Signals and abstract sockets do not leave the sandbox, where Landlock can do that.
func restrictFiles(read, write []string) error {
	version := landlockVersion()
	if version == 0 {
		return step("Landlock", unix.ENOSYS)
	}
	handled := uint64(rightsToWrite)
	if len(read) > 0 {
		handled |= rightsToRead
	}
	if version >= 2 {
		handled |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		handled |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return step("Landlock", errno)
	}
	defer unix.Close(int(fd))
	for _, path := range read {
		if err := allow(int(fd), path, handled&rightsToRead); err != nil {
			return step("Landlock", err)
		}
	}
	for _, path := range write {
		if err := allow(int(fd), path, handled); err != nil {
			return step("Landlock", err)
		}
	}
	if _, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return step("Landlock", errno)
	}
	return nil
}

// allow adds a rule for a path and everything below it. Paths that do not exist need no rule.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := syscall.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
