package trial

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/runner/executor"
	"waza/runner/internal/checkout"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// openSandboxesLocked opens the sandboxes of the run that an order belongs to. e.mu must be held.
func (e *Env) openSandboxesLocked(ctx context.Context, o *record.Order) error {
	if e.sandboxes != nil || !e.needsSandbox(o) {
		return nil
	}
	asked := &o.Suite.Config.Sandbox
	tier, err := sandbox.Choose(asked.Mode)
	if err != nil {
		return executor.Permanent(err)
	}
	policy, err := sandbox.PolicyOf(asked, o.Suite.Dir)
	if err != nil {
		return executor.Permanent(err)
	}
	state := e.State
	if state == "" {
		state = filepath.Dir(e.Dir)
	}
	policy.Hidden = append(partsOf(o), o.Suite.Dir, state)
	if tier == record.TierContainer { // it must exist when a container starts
		if err := os.MkdirAll(e.historyDir(), 0o700); err != nil {
			return err
		}
	}
	policy.Read = append(policy.Read, e.historyDir())
	s, err := sandbox.Open(tier, policy)
	if err != nil {
		return executor.Permanent(err)
	}
	if err := s.Prepare(ctx, surroundings.SandboxImage{}); err != nil {
		s.Close()
		if ctx.Err() != nil {
			return err
		}
		return executor.Permanent(err)
	}
	e.sandboxes = s
	if e.Grading != nil {
		e.Grading.Sandboxes = s
	}
	return nil
}

// partsOf returns the parts of the suite in its skills, for all programs of the run.
func partsOf(o *record.Order) []string {
	var parts []string
	known := map[string]bool{}
	for _, t := range append(slices.Clone(o.Suite.Tasks), o.Task) { // a worker gets the task alone
		for _, skill := range t.Skills {
			if known[skill] {
				continue
			}
			known[skill] = true
			real := files.RealPath(skill)
			for _, part := range o.Suite.PartsIn(skill) {
				in, err := filepath.Rel(skill, part)
				if err == nil && files.RealPath(part) == filepath.Join(real, in) { // links lead to parts that are hidden
					parts = append(parts, part)
				}
			}
		}
	}
	return parts
}

// chosenTier returns the tier that this worker chose for the programs of an order. It is empty if
// the run names the tier, and before the sandbox is open.
func (e *Env) chosenTier(o *record.Order) record.Tier {
	if e.Worker == "" || o.Suite.Config.Sandbox.Mode != surroundings.SandboxAuto {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sandboxes == nil {
		return ""
	}
	return e.sandboxes.Tier()
}

// HookSandbox returns the sandbox for the hooks of an order's task and their environment; nil if they
// have none. They see the suite. In the mode auto they can also change its directory, because suites
// generate inputs there.
func (e *Env) HookSandbox(ctx context.Context, o *record.Order, env []string) (*proc.Sandbox, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.openSandboxesLocked(ctx, o); err != nil {
		return nil, err
	}
	if e.sandboxes.Tier() == record.TierContainer { // they prepare files of this machine
		return nil, nil
	}
	v := sandbox.View{Env: env, Suite: true, Read: []string{o.Suite.Root(), o.Suite.Dir}}
	if o.Suite.Config.Sandbox.Mode == surroundings.SandboxAuto {
		v.Write = []string{o.Suite.Dir}
	}
	return e.sandboxes.For(v), nil
}

// needsSandbox reports whether an order starts programs that a sandbox restricts.
func (e *Env) needsSandbox(o *record.Order) bool {
	kind, _ := e.Executors.Lookup(o.Executor)
	return o.Suite.Config.Sandbox.Mode != "" && (kind.Programs || o.Task.RunsPrograms() || o.Suite.RunsPrograms())
}

// historyDir is the directory of the repositories from which checkouts are made for programs in
// sandboxes. Checkouts borrow their objects, so programs need to see it.
func (e *Env) historyDir() string { return filepath.Join(e.Dir, "repositories") }

// history is a repository that contains only a commit and its history.
type history struct {
	once sync.Once
	err  error // set by once
}

// sealed returns the repositories of a trial in a form that programs in a sandbox may see: without
// later commits and other branches, which can contain the answers. Without a sandbox, it returns
// them unchanged.
func (e *Env) sealed(ctx context.Context, repos []record.Checkout) ([]record.Checkout, error) {
	if len(repos) == 0 || !e.confines() {
		return repos, nil
	}
	list := slices.Clone(repos)
	for i := range list {
		sum := sha256.Sum256([]byte(list[i].Source + "\x00" + list[i].Commit))
		dir := filepath.Join(e.historyDir(), hex.EncodeToString(sum[:8]))
		e.mu.Lock()
		if e.histories == nil {
			e.histories = map[string]*history{}
		}
		h := e.histories[dir]
		if h == nil {
			h = &history{}
			e.histories[dir] = h
		}
		e.mu.Unlock()
		h.once.Do(func() {
			if h.err = os.MkdirAll(filepath.Dir(dir), 0o700); h.err == nil {
				h.err = checkout.CopyHistory(context.WithoutCancel(ctx), list[i].Source, list[i].Commit, dir)
			}
		})
		if h.err != nil {
			return nil, fmt.Errorf("workspace: repos: %w", h.err)
		}
		list[i].Source = dir
	}
	return list, nil
}

// confines reports whether programs run in sandboxes.
func (e *Env) confines() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sandboxes.Confine()
}
