package proc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/proc"
)

const hybridMounts = `24 30 0:22 / /proc rw,nosuid - proc proc rw
40 32 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 32 0:31 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
`

func TestCgroupPath(t *testing.T) {
	t.Parallel()
	const (
		whole = "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		part  = "35 24 0:30 /user.slice/app /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
	)
	for _, c := range []struct{ groups, mounts, want string }{
		{"0::/user.slice/user-1000.slice/app.scope\n", whole, "/sys/fs/cgroup/user.slice/user-1000.slice/app.scope"},
		{"9:name=systemd:/x\n4:memory:/y\n0::/\n", hybridMounts, "/sys/fs/cgroup/unified"},
		{"0::/user.slice/app/one\n", part, "/sys/fs/cgroup/one"},
		{"0::/user.slice/app\n", part, "/sys/fs/cgroup"},
		{"0::/system.slice\n", part, ""},
		{"0::/../other\n", whole, ""},
		{"0::../other\n", whole, ""},
		{"4:memory:/y\n", hybridMounts, ""},
		{"0::/\n", "no mounts", ""},
		{"", "", ""},
	} {
		require.Equal(t, c.want, proc.CgroupPath(c.groups, c.mounts), "%q in %q", c.groups, c.mounts)
	}
}
