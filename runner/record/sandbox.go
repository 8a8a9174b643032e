package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"waza/eval/surroundings"
	"waza/eval/text"
)

// Tier is the kind of protection that a sandbox gives. The mode auto of a suite uses the first of
// namespaces, landlock and none that a machine has; macOS has seatbelt instead of the first two.
type Tier string

// The tiers.
const (
	// TierNamespaces: Linux namespaces with a root of their own, Landlock, and a filter of system calls.
	TierNamespaces Tier = "namespaces"
	// TierLandlock: Landlock and a filter of system calls. Processes and the network are not hidden.
	TierLandlock Tier = "landlock"
	// TierSeatbelt: a profile of sandbox-exec, on macOS.
	TierSeatbelt Tier = "seatbelt"
	// TierContainer: a container of docker, podman or another runtime.
	TierContainer Tier = "container"
	// TierNone: the suite asks for the strongest tier, but the machine has none.
	TierNone Tier = "none"
	// TierOff: the suite, .waza.yaml or the request turned sandboxes off.
	TierOff Tier = "off"
	// TierWorkers: each worker of a fleet uses its own strongest tier, which its trials name.
	TierWorkers Tier = "of each worker"
)

// AgentProcess is whether trials share the process of an agent.
type AgentProcess string

// The values of [Sandbox.Agent].
const (
	// AgentPerTrial: each trial has a process of its own.
	AgentPerTrial AgentProcess = "process per trial"
	// AgentShared: one process serves many trials, and can keep what it learned in one of them.
	AgentShared AgentProcess = "shared process"
)

// TierTrials is the number of trials that had a tier.
type TierTrials struct {
	Tier   Tier `json:"tier"`
	Trials int  `json:"trials"`
}

// Sandbox describes the sandboxes of a run. All formats show it in the words of [Sandbox.String].
type Sandbox struct {
	// Mode is what the suite or the request asked for.
	Mode surroundings.SandboxMode `json:"mode"`
	// Tier is the protection that the trials had.
	Tier Tier `json:"tier"`
	// Network is what programs could connect to.
	Network surroundings.Network `json:"network"`
	// Limits are those of each trial; 0 means none.
	Limits surroundings.SandboxLimits `json:"limits,omitzero"`
	// SandboxImage is the image of the mode container. Tasks can have others.
	surroundings.SandboxImage
	// Missing names limits and parts that the machine could not keep, one sentence each, without a
	// period.
	Missing []string `json:"missing,omitempty"`
	// Agent is absent for executors without agents.
	Agent AgentProcess `json:"agent,omitempty"`
	// Tiers are those of [Summary.Tiers]. The record of the run has none: [Sandbox.After] adds them.
	Tiers []TierTrials `json:"tiers,omitempty"`
}

// After returns the sandbox with the tiers that workers of a fleet chose, which the summary of the run
// counts. It returns s itself if the summary counts no tiers. Both can be nil.
func (s *Sandbox) After(sum *Summary) *Sandbox {
	if s == nil || sum == nil || len(sum.Tiers) == 0 {
		return s
	}
	after := *s
	after.Tiers = sum.Tiers
	return &after
}

// tiers names the tiers that trials had.
func (s *Sandbox) tiers() string {
	if len(s.Tiers) == 0 {
		return string(s.Tier)
	}
	names := make([]string, len(s.Tiers))
	for i, t := range s.Tiers {
		names[i] = string(t.Tier)
	}
	return strings.Join(names, "/")
}

// unknownSandbox describes runs whose record has no sandbox.
const unknownSandbox = "unknown: the run was recorded before waza had sandboxes, or by another tool"

// String describes the sandbox in one line, such as "namespaces, network open, 1024 processes, 10 GiB
// disk; memory is not limited". A nil Sandbox is unknown.
// After a run with workers, see [Sandbox.After], it starts with "of each worker (landlock for 8 trials,
// none for 1 trial)".
func (s *Sandbox) String() string {
	switch {
	case s == nil:
		return unknownSandbox
	case s.Tier == TierOff:
		return string(TierOff)
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	add("%s", s.Tier)
	if s.Mode != "" && s.Mode != surroundings.SandboxAuto && string(s.Mode) != string(s.Tier) {
		parts[0] += " (" + string(s.Mode) + ")"
	}
	if len(s.Tiers) > 0 {
		tiers := make([]string, len(s.Tiers))
		for i, t := range s.Tiers {
			tiers[i] = fmt.Sprintf("%s for %s", t.Tier, text.Count(t.Trials, "trial", "trials"))
		}
		parts[0] += " (" + strings.Join(tiers, ", ") + ")"
	}
	if image := cmp.Or(s.Image, s.Dockerfile); image != "" {
		add("image %s", image)
	}
	if len(s.Network.Hosts) > 0 {
		add("network to %s", s.Network)
	} else {
		add("network %s", s.Network)
	}
	if n := s.Limits.Memory; n > 0 {
		add("%s memory", n)
	}
	if n := s.Limits.Processes; n > 0 {
		add("%s", text.Count(int(n), "process", "processes"))
	}
	if n := s.Limits.Disk; n > 0 {
		add("%s disk", n)
	}
	if n := s.Limits.Files; n > 0 {
		add("%s", text.Count(int(n), "open file", "open files"))
	}
	if s.Agent != "" {
		add("%s", s.Agent)
	}
	notes := slices.Clone(s.Missing)
	if s.Tier == TierWorkers {
		notes = append(notes, "each worker keeps what its tier can")
	}
	if s.Limits.Memory == 0 && s.Tier != TierNone {
		notes = append(notes, "memory is not limited")
	}
	return strings.Join(append([]string{strings.Join(parts, ", ")}, notes...), "; ")
}

// Differs returns the reason why trials of two runs did not have the same protection: their tier, or
// their limits. It is empty if they had, and if one of the sandboxes is unknown.
func (s *Sandbox) Differs(other *Sandbox) string {
	if s == nil || other == nil {
		return ""
	}
	// The record of a run with workers contains the limits that it asked for. The machine of another
	// run can have kept fewer.
	alike := (s.Tier == TierWorkers) == (other.Tier == TierWorkers)
	switch a, b := s.tiers(), other.tiers(); {
	case a != b:
		return fmt.Sprintf("the runs had different sandboxes: %s and %s", a, b)
	case len(s.Tiers) > 1:
		return fmt.Sprintf("trials of both runs had different sandboxes: %s", a)
	case s.Network.String() != other.Network.String():
		return fmt.Sprintf("the sandboxes of the runs had different networks: %s and %s", s.Network, other.Network)
	case s.Limits != other.Limits && (alike || a == string(TierNamespaces)):
		return "the sandboxes of the runs had different limits"
	case !slices.Equal(s.Missing, other.Missing) && alike:
		return "the sandboxes of the runs lacked different parts"
	}
	return ""
}
