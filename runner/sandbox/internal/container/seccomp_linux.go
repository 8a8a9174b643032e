package container

import (
	"golang.org/x/sys/unix"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/calls"
)

// filterOf returns the filter of system calls, see package calls.
func filterOf() *configFilter {
	const clone, ioctl = "clone", "ioctl"
	f := &configFilter{Default: "SCMP_ACT_ALLOW", Calls: []configCalls{
		deny(calls.Denied), deny([]string{ioctl}, lower(1, unix.TIOCSTI)), deny([]string{ioctl}, lower(1, unix.TIOCLINUX)),
		deny([]string{"setrlimit"}, lower(0, proc.LimitOfLocks)),
		deny([]string{"prlimit64"}, lower(1, proc.LimitOfLocks), configArgument{Index: 2, Operation: "SCMP_CMP_NE"}),
		{Names: []string{"clone3"}, Action: "SCMP_ACT_ERRNO", Errno: int(unix.ENOSYS)},
	}}
	for bit := uint64(1); bit <= calls.NamespaceFlags; bit <<= 1 {
		if bit&calls.NamespaceFlags != 0 {
			f.Calls = append(f.Calls, deny([]string{clone}, masked(0, bit, bit)))
		}
	}
	return f
}

// deny returns system calls that fail with EPERM if all conditions hold.
func deny(names []string, conditions ...configArgument) configCalls {
	return configCalls{Names: names, Action: "SCMP_ACT_ERRNO", Errno: int(unix.EPERM), Arguments: conditions}
}

// lower returns the condition that the lower 32 bits of an argument are value. The kernel ignores the
// rest of an int.
func lower(index int, value uint64) configArgument { return masked(index, 1<<32-1, value) }

// masked returns the condition that the bits of mask in an argument are value.
func masked(index int, mask, value uint64) configArgument {
	return configArgument{Index: index, Value: mask, Second: value, Operation: "SCMP_CMP_MASKED_EQ"}
}
