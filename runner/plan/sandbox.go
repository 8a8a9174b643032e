package plan

import (
	"path/filepath"

	"waza/eval/decode"
	"waza/eval/surroundings"
	"waza/runner/record"
)

// Sandboxes returns the sandbox that this machine has for the trials of a suite, see
// [record.Sandbox]. Its error names the part that the mode needs and the machine lacks, and how to
// get it. It is safe for concurrent use.
type Sandboxes func(s surroundings.Sandbox) (*record.Sandbox, error)

// chooseSandbox sets the sandbox of the trials. With a fleet, workers provide it: the modes strict and
// container have the same tier on each of them, and in the mode auto each uses its strongest.
func (d *draft) chooseSandbox(of Sandboxes) {
	asked := d.Config.Sandbox
	s := &record.Sandbox{Mode: asked.Mode, Network: asked.Network, Limits: asked.Limits, SandboxImage: asked.SandboxImage}
	switch {
	case of == nil || !d.kind.Programs && !d.Suite.RunsPrograms():
		return
	case asked.Mode == surroundings.SandboxOff:
		s = &record.Sandbox{Mode: asked.Mode, Tier: record.TierOff, Network: surroundings.Network{Open: true}}
	case d.Fleet == nil:
		var found *record.Sandbox
		if found, d.sandboxLack = of(asked); d.sandboxLack == nil {
			s = found
		} else {
			s.Tier = tierOf(asked.Mode)
		}
	default:
		s.Tier = tierOf(asked.Mode)
	}
	if d.kind.Agents && d.Fleet == nil {
		s.Agent = record.AgentPerTrial
		if s.Tier == record.TierOff || s.Tier == record.TierNone {
			s.Agent = record.AgentShared
		}
	}
	d.Sandbox = s
}

// tierOf returns the tier of a mode wherever trials run.
func tierOf(mode surroundings.SandboxMode) record.Tier {
	switch mode {
	case surroundings.SandboxOff:
		return record.TierOff
	case surroundings.SandboxStrict:
		return record.TierNamespaces
	case surroundings.SandboxContainer:
		return record.TierContainer
	}
	return record.TierWorkers
}

// sandboxNeeds returns what a worker needs for the sandbox of the trials.
func (p *Plan) sandboxNeeds() []record.Need {
	if p.Sandbox == nil {
		return nil
	}
	if mode := p.Sandbox.Mode; mode == surroundings.SandboxStrict || mode == surroundings.SandboxContainer {
		return []record.Need{{Kind: record.NeedSandbox, Name: string(tierOf(mode))}}
	}
	return nil
}

// sandbox reports what this machine lacks for the sandbox.
func (f *preflight) sandbox() {
	if lack := f.plan.sandboxLack; lack != nil {
		f.add(f.plan.Suite.Diagnose(decode.At("config", "sandbox"), decode.Error, decode.CodeUnavailable, lack.Error()))
	}
}

// sandbox adds the sandbox of the suite to the hash of its content: a trial is reused only if it had
// the same policy and tier. Nothing is added in the mode off, and without sandboxes. So a trial that
// was recorded before waza had sandboxes is reused only in the mode off, which it had. With
// [record.TierWorkers], trials of all tiers are reused, and each keeps its own, see
// [record.Trial.Tier].
func (d *contents) sandbox(sum string) (string, error) {
	s := d.plan.Config.Sandbox
	policy := []any{sum, "sandbox", d.plan.Sandbox.Tier, s.Network, s.Keys, s.Home, s.Read, s.Write, s.Limits}
	if s.Mode == surroundings.SandboxContainer {
		image, err := d.image(s.SandboxImage)
		if err != nil {
			return "", err
		}
		policy = append(policy, image)
	}
	return digestJSON(policy)
}

// image returns the content of an image: its name, or the files of its build context.
func (d *contents) image(i surroundings.SandboxImage) ([]any, error) {
	if i.Dockerfile == "" {
		return []any{i.Image}, nil
	}
	path := surroundings.Absolute(i.Dockerfile, d.plan.Suite.Dir, "")
	context, err := d.skill(filepath.Dir(path))
	return []any{filepath.Base(path), context}, err
}
