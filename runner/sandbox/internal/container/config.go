package container

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"waza/runner/proc"
)

// config is the part of config.json of a bundle that waza sets. Source: the OCI Runtime Specification
// 1.0.
type config struct {
	Version string        `json:"ociVersion"`
	Process configProcess `json:"process"`
	Root    configRoot    `json:"root"`
	Host    string        `json:"hostname"`
	Mounts  []configMount `json:"mounts"`
	Linux   configLinux   `json:"linux"`
}

type configProcess struct {
	User            configUser          `json:"user"`
	Args            []string            `json:"args"`
	Env             []string            `json:"env"`
	Dir             string              `json:"cwd"`
	Capabilities    map[string][]string `json:"capabilities"`
	NoNewPrivileges bool                `json:"noNewPrivileges"`
	Limits          []configLimit       `json:"rlimits,omitempty"`
}

// configLimit is a limit of each process. Runtimes that cannot raise a limit refuse to start.
type configLimit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

// configUser is the root user, whose files belong to the user of waza.
type configUser struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

type configRoot struct {
	Path string `json:"path"`
}

type configMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

type configLinux struct {
	Settings      map[string]string `json:"sysctl,omitempty"`
	Namespaces    []configNamespace `json:"namespaces"`
	MaskedPaths   []string          `json:"maskedPaths"`
	ReadonlyPaths []string          `json:"readonlyPaths"`
	Filter        *configFilter     `json:"seccomp"`
}

// configFilter is a filter of system calls.
type configFilter struct {
	Default string        `json:"defaultAction"`
	Calls   []configCalls `json:"syscalls"`
}

// configCalls is what happens at system calls if all conditions on their arguments hold.
type configCalls struct {
	Names     []string         `json:"names"`
	Action    string           `json:"action"`
	Errno     int              `json:"errnoRet"`
	Arguments []configArgument `json:"args,omitempty"`
}

type configArgument struct {
	Index     int    `json:"index"`
	Value     uint64 `json:"value"`
	Second    uint64 `json:"valueTwo"`
	Operation string `json:"op"`
}

type configNamespace struct {
	Type string `json:"type"`
}

// usualPath is the PATH of programs on a root file system.
const usualPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// resolver is the file with the name servers of an open network.
const resolver = "/etc/resolv.conf"

// configOf returns the configuration of a program with the arguments args.
func configOf(of Box, mounts []Mount, p *Program, args []string) config {
	c := config{
		Version: "1.0.2", Host: "waza", Root: configRoot{"root"},
		Process: configProcess{
			Args: args, Env: append([]string{usualPath}, p.variables(of.Mounts)...), Dir: "/", NoNewPrivileges: true,
			Capabilities: map[string][]string{}, Limits: limitsOf(of.Limits, p.Mark),
		},
		Mounts: []configMount{
			{"/proc", "proc", "proc", []string{"nosuid", "noexec", "nodev"}},
			{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{"/dev/shm", "tmpfs", "shm", []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
		},
		Linux: configLinux{
			MaskedPaths:   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug"},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			Filter:        filterOf(),
		},
	}
	if p.Cmd.Dir != "" {
		c.Process.Dir = p.Cmd.Dir
	}
	var names []string
	for _, name := range capabilities {
		names = append(names, "CAP_"+name)
	}
	for _, set := range []string{"bounding", "effective", "permitted"} {
		c.Process.Capabilities[set] = names
	}
	spaces := []string{"pid", "ipc", "uts", "mount"}
	if of.Isolated {
		spaces = append(spaces, "network")
	}
	for _, name := range spaces {
		c.Linux.Namespaces = append(c.Linux.Namespaces, configNamespace{name})
	}
	if of.Proxied {
		c.Linux.Settings = map[string]string{portSetting: "0"}
	}
	mounts = slices.Clone(mounts)
	if _, err := os.Stat(resolver); err == nil && !of.Isolated {
		mounts = append(mounts, Mount{Target: resolver, Source: resolver})
	}
	for _, m := range mounts {
		bind := configMount{m.Target, "bind", m.Source, []string{"rbind", "nosuid", "nodev"}}
		switch {
		case m.Source == "":
			bind = configMount{m.Target, "tmpfs", "tmpfs", []string{"nosuid", "nodev", "mode=755"}}
		case !m.Writable:
			bind.Options = append(bind.Options, "ro")
		}
		c.Mounts = append(c.Mounts, bind)
	}
	return c
}

// limitsOf returns the limits of each process, and the mark of the program.
func limitsOf(l Limits, mark uint64) []configLimit {
	var list []configLimit
	for _, r := range []struct {
		name     string
		resource int
		most     int64
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, l.Memory}, {"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, l.FileSize}, {"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, l.Files},
	} {
		var own unix.Rlimit
		if r.most <= 0 || unix.Getrlimit(r.resource, &own) != nil {
			continue
		}
		most := min(uint64(r.most), uint64(own.Max)) //nolint:unconvert // it is signed on FreeBSD
		list = append(list, configLimit{r.name, most, most})
	}
	var own unix.Rlimit
	if mark > 0 && unix.Getrlimit(proc.LimitOfLocks, &own) == nil {
		most := uint64(own.Max) //nolint:unconvert // it is signed on FreeBSD
		list = append(list, configLimit{Type: "RLIMIT_LOCKS", Hard: most, Soft: min(mark, most)})
	}
	return list
}
