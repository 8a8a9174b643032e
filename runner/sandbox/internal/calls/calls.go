// Package calls lists the system calls that programs in sandboxes must not make, for the two forms of
// their filter: the program of waza, and the configuration of an OCI runtime. Besides [Denied], a filter
// denies clone with one of NamespaceFlags, changes of the limit [waza/runner/proc.LimitOfLocks], the requests
// of a terminal TIOCSTI and TIOCLINUX, and, with ENOSYS, clone3, whose flags it cannot check: the C library
// uses clone instead.
package calls

// Denied are the system calls that fail with EPERM. Programs need none of them, and the kernel
// has had faults in most: see the profile of Docker, which denies the same without privileges.
var Denied = []string{
	"acct", "add_key", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module",
	"finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup",
	"kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr", "move_mount", "name_to_handle_at",
	"nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root", "quotactl", "quotactl_fd", "reboot", "request_key", "setns",
	"settimeofday", "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd", "vhangup",
	"ioperm", "iopl", "modify_ldt",
}
