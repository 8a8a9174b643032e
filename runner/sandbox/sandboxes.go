package sandbox

import (
	"fmt"

	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox/internal/container"
)

// Sandboxes are the sandboxes of one run. It is safe for concurrent use.
type Sandboxes struct {
	tier   record.Tier
	policy Policy
	host   host
	// containers is nil for other tiers.
	containers *container.Containers
}

// Open prepares the sandboxes of a run with a tier of this machine. It starts no sandbox, but removes
// containers that killed processes left behind. The caller calls Close when all programs have ended.
func Open(tier record.Tier, policy Policy) (*Sandboxes, error) {
	s := &Sandboxes{tier: tier, policy: policy, host: newHost()}
	switch tier {
	case record.TierNamespaces, record.TierLandlock, record.TierSeatbelt, record.TierNone, record.TierOff:
		return s, nil
	case record.TierContainer:
		return s, s.openContainers()
	}
	return nil, fmt.Errorf("unknown tier %q", tier)
}

// Close ends the helpers of the sandboxes.
func (s *Sandboxes) Close() {
	if s != nil {
		s.host.close()
		s.containers.Close()
	}
}

// Tier returns the tier. It is off for nil.
func (s *Sandboxes) Tier() record.Tier {
	if s == nil {
		return record.TierOff
	}
	return s.tier
}

// Confine reports whether programs have sandboxes.
func (s *Sandboxes) Confine() bool { return s.Tier() != record.TierOff && s.tier != record.TierNone }

// For returns the sandbox of a program with that view; nil for the tiers none and off.
func (s *Sandboxes) For(v View) *proc.Sandbox {
	switch s.Tier() {
	case record.TierNamespaces, record.TierLandlock:
		return s.host.sandbox(s, v)
	case record.TierSeatbelt:
		return s.seatbelt(v)
	case record.TierContainer:
		return s.container(v)
	}
	return nil
}

// OutputVariable identifies the standard output of a grader in its environment. A command that
// runs code of the agent for the grader must not write there, because the grader's last line is
// its verdict.
const OutputVariable = "WAZA_GRADER_OUTPUT"

// errNotVisible completes the error of a program that the sandbox does not show.
func errNotVisible(path string, err error) error {
	return &hint{
		fmt.Errorf("%w in the sandbox: %s", err, path),
		"add its directory to config.sandbox.read",
	}
}
