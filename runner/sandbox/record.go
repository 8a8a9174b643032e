package sandbox

import (
	"context"
	"fmt"

	"waza/eval/surroundings"
	"waza/runner/record"
	"waza/runner/sandbox/internal/container"
)

// Of returns the sandbox that this machine gives to the programs of a suite, in the form of records.
// The error is that of [Choose], or names a key that the tier cannot keep.
func Of(asked surroundings.Sandbox) (*record.Sandbox, error) {
	if asked.Mode == surroundings.SandboxOff {
		return &record.Sandbox{Mode: asked.Mode, Tier: record.TierOff, Network: surroundings.Network{Open: true}}, nil
	}
	tier, err := Choose(asked.Mode)
	if err != nil {
		return nil, err
	}
	s := &record.Sandbox{Mode: asked.Mode, Tier: tier, Network: asked.Network, Limits: asked.Limits}
	if tier == record.TierNamespaces {
		s.Missing = Detect().Missing
		return s, nil
	}
	if tier == record.TierContainer {
		policy, err := PolicyOf(&asked, "")
		if err != nil {
			return nil, err
		}
		engine, err := container.Find(context.Background())
		if err != nil {
			return nil, fmt.Errorf("config.sandbox: %w", err)
		}
		if err := policy.checkContainer(engine); err != nil {
			return nil, err
		}
		s.SandboxImage = asked.SandboxImage
		kept, missing := engine.Kept(policy.Limits.ofContainer())
		s.Limits.Memory, s.Limits.Processes, s.Missing = surroundings.Bytes(kept.Memory), surroundings.Count(kept.Processes), missing
		return s, nil
	}
	if tier == record.TierNone {
		s.Missing = append(s.Missing, "this machine has no sandbox: waza sandbox prints the reasons")
	}
	if s.Limits != (surroundings.SandboxLimits{}) {
		s.Limits = surroundings.SandboxLimits{}
		s.Missing = append(s.Missing, "processes, disk and open files are not limited")
	}
	if tier != record.TierSeatbelt && !asked.Network.Open {
		s.Network = surroundings.Network{Open: true}
		s.Missing = append(s.Missing, "the network is not restricted")
	}
	if asked.Keys == surroundings.KeysProxy {
		s.Missing = append(s.Missing, "programs see API keys")
	}
	return s, nil
}

// Offered returns the tiers that this machine offers, the strongest first, and then containers.
func Offered() []record.Tier {
	tiers := Detect().Tiers()
	if _, err := container.Find(context.Background()); err == nil {
		tiers = append(tiers, record.TierContainer)
	}
	return tiers
}
