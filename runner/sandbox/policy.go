package sandbox

import (
	"context"
	"fmt"
	"os"

	"waza/eval/surroundings"
	"waza/runner/record"
	"waza/runner/sandbox/internal/container"
	"waza/runner/sandbox/internal/proxy"
)

// PolicyOf returns the policy that a suite asks for. dir is the suite's directory. Nothing is hidden
// yet.
func PolicyOf(s *surroundings.Sandbox, dir string) (Policy, error) {
	home, _ := os.UserHomeDir() // without one, no path is below it
	p := Policy{
		Isolated: !s.Network.Open, WithholdKeys: s.Keys == surroundings.KeysProxy, HomeShared: s.Home == surroundings.HomeShared,
		Image: s.SandboxImage, Dir: dir,
		Limits: Limits{
			Memory: int64(s.Limits.Memory), Processes: int64(s.Limits.Processes), Disk: int64(s.Limits.Disk), Files: int64(s.Limits.Files),
		},
	}
	for _, entry := range s.Read {
		p.Read = append(p.Read, surroundings.Absolute(entry, dir, home))
	}
	for _, entry := range s.Write {
		p.Write = append(p.Write, surroundings.Absolute(entry, dir, home))
	}
	var err error
	if p.Allow, err = proxy.ParseRules(s.Network.Hosts); err != nil {
		return Policy{}, fmt.Errorf("config.sandbox: %w", err)
	}
	return p, nil
}

// ofTask returns the policy for a task with a network of its own, which can be nil. Such a network only
// closes that of the policy, whose hosts are the user's choice and remain.
func (p *Policy) ofTask(w *surroundings.Network) (*Policy, error) {
	if w == nil || w.Open {
		return p, nil
	}
	own := *p
	rules, err := proxy.ParseRules(w.Hosts)
	if err != nil {
		return nil, fmt.Errorf("sandbox.network of the task: %w", err)
	}
	if p.Isolated {
		rules = p.Allow.And(rules)
	}
	own.Isolated, own.Allow = true, rules
	return &own, nil
}

// Choose returns the tier of this machine for a mode. The error names what the machine lacks and
// how to get it.
func Choose(mode surroundings.SandboxMode) (record.Tier, error) {
	switch mode {
	case surroundings.SandboxOff, "":
		return record.TierOff, nil
	case surroundings.SandboxAuto:
		return Detect().strongest(), nil
	case surroundings.SandboxContainer:
		if _, err := container.Find(context.Background()); err != nil {
			return "", fmt.Errorf("config.sandbox: this machine cannot run programs in the mode container: %w", err)
		}
		return record.TierContainer, nil
	case surroundings.SandboxStrict:
		if err := Detect().Strict(); err != nil {
			return "", &hint{
				fmt.Errorf("this machine cannot run programs in the sandbox strict: %w", err),
				"or choose auto, which uses the strongest sandbox of the machine",
			}
		}
		return record.TierNamespaces, nil
	}
	return "", fmt.Errorf("config.sandbox: the mode %q is not available", mode)
}

// CheckHost returns the fault of an entry of config.sandbox.network; nil if it has none.
func CheckHost(entry string) error {
	_, err := proxy.ParseRules([]string{entry})
	return err
}
