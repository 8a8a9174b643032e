package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval/surroundings"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// machineWith returns sandboxes of a machine whose strongest tier is the given one.
func machineWith(tier record.Tier) plan.Sandboxes {
	return func(s surroundings.Sandbox) (*record.Sandbox, error) {
		if s.Mode == surroundings.SandboxStrict && tier != record.TierNamespaces {
			return nil, errors.New("user namespaces are switched off: sysctl kernel.unprivileged_userns_clone=1")
		}
		return &record.Sandbox{Mode: s.Mode, Tier: tier, Network: s.Network, Limits: s.Limits}, nil
	}
}

// sandboxed returns the plan of a suite on a machine; "" for a runner without sandboxes.
func sandboxed(t *testing.T, tier record.Tier, config, task string, req record.Request) *plan.Plan {
	t.Helper()
	o := runner.Options{StateDir: t.TempDir()}
	if tier != "" {
		o.Sandboxes = machineWith(tier)
	}
	r, err := runner.New(o)
	require.NoError(t, err)
	suite := runnertest.Load(t, r, "-- eval.yaml --\nname: n\nconfig: {executor: command, command: echo"+config+"}\ntasks: [{id: a, prompt: x"+task+"}]\n"+
		"-- image/Dockerfile --\nFROM scratch\n-- other/Dockerfile --\nFROM alpine\n")
	p, err := r.Planner().Plan(t.Context(), suite, req)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// A trial is reused only if it had the same policy and tier. Without a sandbox, its hash is that of
// versions without sandboxes.
func TestHashedSandbox(t *testing.T) {
	t.Parallel()
	hash := func(tier record.Tier, config, task string) string {
		return sandboxed(t, tier, config, task, record.Request{}).Tasks[0].Execution
	}
	before := hash("", "", "")
	require.Equal(t, before, hash("", ", sandbox: strict", ""), "this process has no sandboxes")
	require.Equal(t, before, hash(record.TierNamespaces, ", sandbox: off", ""))
	require.Equal(t, before, hash(record.TierLandlock, ", sandbox: {mode: off, network: none}", ""))
	auto := hash(record.TierNamespaces, "", "")
	require.Equal(t, auto, hash(record.TierNamespaces, ", sandbox: {network: open, limits: {disk: 10240MiB}}", ""))
	require.Equal(t, auto, hash(record.TierNamespaces, ", sandbox: strict", ""), "the same policy and tier")
	seen := map[string]string{before: "off", auto: "auto"}
	different := func(name, hash string) {
		t.Helper()
		require.Empty(t, seen[hash], name)
		seen[hash] = name
	}
	different("tier", hash(record.TierLandlock, "", ""))
	different("no tier", hash(record.TierNone, "", ""))
	for _, key := range []string{
		"network: none", "network: [a.org]", "keys: proxy", "home: shared", "read: [/opt]", "write: [/opt]", "limits: {memory: 1GiB}",
	} {
		different(key, hash(record.TierNamespaces, ", sandbox: {"+key+"}", ""))
	}
	different("image", hash(record.TierContainer, ", sandbox: {mode: container, image: alpine}", ""))
	different("Dockerfile", hash(record.TierContainer, ", sandbox: {mode: container, dockerfile: image/Dockerfile}", ""))
	different("image of the task", hash(record.TierContainer, ", sandbox: {mode: container, image: alpine}", ", sandbox: {image: debian}"))
	different("Dockerfile of the task",
		hash(record.TierContainer, ", sandbox: {mode: container, image: alpine}", ", sandbox: {dockerfile: other/Dockerfile}"))
}

// The record of a run names its sandbox.
func TestSandboxOfRecord(t *testing.T) {
	t.Parallel()
	of := func(tier record.Tier, config string, req record.Request) *record.Sandbox {
		return sandboxed(t, tier, config, "", req).Record("id", time.Time{}, 1).Sandbox
	}
	require.Nil(t, of("", "", record.Request{}))
	require.Equal(t, "namespaces, network open, 1024 processes, 10 GiB disk; memory is not limited",
		of(record.TierNamespaces, "", record.Request{}).String())
	require.Equal(t, "off", of(record.TierNamespaces, ", sandbox: off", record.Request{}).String())
	fleet := record.Request{Fleet: "nats://host"}
	require.Equal(t, record.TierWorkers, of(record.TierLandlock, "", fleet).Tier)
	require.Equal(t, record.TierNamespaces, of(record.TierLandlock, ", sandbox: strict", fleet).Tier)
	require.Equal(t, record.TierOff, of(record.TierLandlock, ", sandbox: off", fleet).Tier)
}

// A machine that lacks the sandbox of a suite refuses the run, and says why. With a fleet, workers
// need it instead.
func TestMissingSandbox(t *testing.T) {
	t.Parallel()
	p := sandboxed(t, record.TierLandlock, ", sandbox: strict", "", record.Request{})
	ds := p.Preflight(t.Context())
	require.True(t, ds.HasErrors())
	require.True(t, strings.HasSuffix(ds[0].String(),
		"/eval.yaml:2:53: error: user namespaces are switched off: sysctl kernel.unprivileged_userns_clone=1 [unavailable]"), ds[0].String())
	require.Empty(t, sandboxed(t, record.TierNamespaces, ", sandbox: strict", "", record.Request{}).Preflight(t.Context()).Errors())

	fleet := record.Request{Fleet: "nats://host"}
	p = sandboxed(t, record.TierLandlock, ", sandbox: strict", "", fleet)
	require.Equal(t, "program sh, sandbox namespaces", needsOf(p))
	for _, d := range p.Preflight(t.Context()) {
		require.NotContains(t, d.Message, "namespaces")
	}
	require.Equal(t, "sandbox container", needsOf(sandboxed(t, record.TierLandlock, ", sandbox: {mode: container, image: alpine}", "", fleet)))
	require.Equal(t, "program sh", needsOf(sandboxed(t, record.TierLandlock, "", "", fleet)))
}
