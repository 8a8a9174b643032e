// Package sandbox keeps the programs of trials, such as agents and graders, from everything but
// their own work. [Detect] finds the tiers of this machine, [Open] starts the sandboxes of a run
// and [Sandboxes.For] returns the sandbox of one program.
//
// The strongest tier, namespaces, works like this:
//
//	waza ── a socket ──► keeper, the first process of its namespaces ──► program
//
// A keeper is waza itself, started with user, mount, process, IPC, host name and, unless the
// network is open, network namespaces. It costs some milliseconds once per worker. For each
// program, a thread of the keeper builds a root that contains only what a [View] names, gives up
// all capabilities, applies Landlock and a filter of system calls, starts the program and ends.
// When the program ends, the keeper kills and reaps everything that it started, and its mounts
// disappear with it.
//
// The tier Landlock restricts a thread of this process that starts the program. It needs no
// helper and hides neither processes nor the network.
package sandbox

import (
	"fmt"
	"strings"

	"waza/eval/surroundings"
	"waza/runner/record"
	"waza/runner/sandbox/internal/proxy"
)

// Machine describes what a machine has for sandboxes.
type Machine struct {
	// Namespaces, Landlock and Seatbelt are the reasons why the machine lacks a tier; nil if it
	// has it.
	Namespaces, Landlock, Seatbelt error
	// Missing lists parts that the strongest tier lacks here, one sentence each, without a
	// period.
	Missing []string
}

// Tiers returns the tiers of a machine, the strongest first, and none as the last.
func (m *Machine) Tiers() []record.Tier {
	var tiers []record.Tier
	for _, t := range []struct {
		tier    record.Tier
		lacking error
	}{{record.TierNamespaces, m.Namespaces}, {record.TierLandlock, m.Landlock}, {record.TierSeatbelt, m.Seatbelt}} {
		if t.lacking == nil {
			tiers = append(tiers, t.tier)
		}
	}
	return append(tiers, record.TierNone)
}

// Strict returns the reason why the machine cannot run programs in the mode strict; nil if it can.
func (m *Machine) Strict() error {
	if m.Namespaces != nil {
		return m.Namespaces
	}
	if m.Landlock != nil {
		return fmt.Errorf("Landlock is missing: %w", m.Landlock)
	}
	return nil
}

// A View describes what a program sees of the machine.
type View struct {
	// Env is the environment of the program. Directories in PATH become visible.
	Env []string
	// Write are directories and files that the program can change, such as the workspace.
	Write []string
	// Read are directories and files that it can read besides the system.
	Read []string
	// Copy are directories of which the program gets a private copy. Its changes vanish.
	Copy []string
	// Logins are the directories and files in which an agent keeps its login, as far as they exist.
	// It can change them, because a login that is refreshed in a copy is lost.
	Logins []string
	// Personal are the user's own settings of an agent in its Logins, such as skills and instructions.
	// Programs find them empty, unless the policy shares the home directory or names their paths.
	Personal []string
	// Task is the part of the sandbox that the task has of its own.
	Task surroundings.TaskSandbox
	// Workspace is the directory that contains the folders of Task.Paths. Each is visible at its path
	// like the workspace: a private copy if Copy contains that.
	Workspace string
	// Elsewhere are directories and files that the program can read at other paths: the paths of the
	// machine by those inside. Only for the tiers Namespaces and Container; in containers, they are also
	// in Write.
	Elsewhere map[string]string
	// Isolated closes the network, whatever the policy says.
	Isolated bool
	// Reach are services of this machine that the program can use in a closed network, such as
	// 127.0.0.1:8080.
	Reach []string
	// OnRefused is called with a description of each connection that the proxy refuses, one
	// after the other, until the program has ended. Nil means that nobody needs it.
	OnRefused func(text string)
	// Suite shows the directories that are hidden otherwise.
	Suite bool
}

// A Policy describes the sandboxes of a run, whatever their tier.
type Policy struct {
	// Isolated closes the network, except for the hosts of Allow.
	Isolated bool
	Allow    proxy.Rules
	// WithholdKeys keeps the keys of model APIs from programs. A proxy adds them to requests.
	WithholdKeys bool
	// HomeShared makes the home directory readable. Otherwise programs have an empty one.
	HomeShared bool
	// Read and Write are directories and files that programs can read or change, besides the
	// system and what a [View] contains.
	Read, Write []string
	// Hidden are directories and files that no program sees, except what a View names: the suite, its
	// parts in skills, and the state of waza.
	Hidden []string
	Limits Limits
	// Image is that of containers, and Dir is the directory to which its Dockerfile is relative.
	Image surroundings.SandboxImage
	Dir   string
}

// Limits restrict what a program and its descendants can use together. 0 means no limit.
type Limits struct {
	Memory    int64 // in bytes
	Processes int64 // processes and threads
	Disk      int64 // in bytes, for each file and for each directory in memory
	Files     int64 // open files of a process
}

// A LimitError reports that a program was ended because it exceeded a limit of its sandbox.
type LimitError struct{ what string }

func (e *LimitError) Error() string { return "ended by the sandbox: " + e.what }

// hint completes an error with what to do about it.
type hint struct {
	err error
	do  string
}

func (h *hint) Error() string { return h.err.Error() + "; " + h.do }

func (h *hint) Unwrap() error { return h.err }

// strongest returns the strongest tier of a machine that a program of the mode auto gets.
func (m *Machine) strongest() record.Tier { return m.Tiers()[0] }

// Describe returns one line for each tier: those of the machine first, then the others with the part
// that it lacks.
func (m *Machine) Describe() string {
	var has, lacks []string
	for _, t := range []struct {
		tier    record.Tier
		lacking error
	}{{record.TierNamespaces, m.Namespaces}, {record.TierLandlock, m.Landlock}, {record.TierSeatbelt, m.Seatbelt}} {
		if t.lacking == nil {
			has = append(has, fmt.Sprintf("%s: available", t.tier))
		} else {
			lacks = append(lacks, fmt.Sprintf("%s: %v", t.tier, t.lacking))
		}
	}
	return strings.Join(append(has, lacks...), "\n")
}
