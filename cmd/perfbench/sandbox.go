package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"waza/eval/surroundings"
	"waza/runner/record"
)

var sandboxMeasure = measure{
	title: "Trial of a program in a sandbox",
	rows: []row{
		{name: "trial of a program (true) in a sandbox", unit: "ms"},
		{name: "cost of a sandbox per trial", unit: "ms", target: target{most: 5}},
	},
	how: "The same trials with `sandbox: auto` on a machine with the tier namespaces; on other machines the rows are left out. The cost is the " +
		"difference to the same trials without a sandbox, measured in turns.",
	floor: "For a trial, a Go program starts `true` directly, 200 times. For the cost, the same program starts `true` with bubblewrap, minus the direct starts: " +
		"with all namespaces of its own, its own `/proc`, `/dev` and `/tmp`, and the system read-only. Without bubblewrap, the row has no floor.",
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		commands := func(mode surroundings.SandboxMode) sequence {
			s := sequence{few: 20, many: 220, suite: func(trials int) string {
				return settingsIn(mode, "command", trials, 1, "  command: ['true']") + "tasks: [{id: a, prompt: x}]\n"
			}}
			if mode != surroundings.SandboxOff {
				s.after = requireNamespaces
			}
			return s
		}
		inside, err := b.trialOf(ctx, commands(surroundings.SandboxAuto))
		if err != nil {
			return nil, err
		}
		outside, err := b.trialOf(ctx, commands(surroundings.SandboxOff))
		if err != nil {
			return nil, err
		}
		wrapper := bubblewrap(b.dir)
		return besideFloor(b.rounds(7, 1), func() ([]float64, error) {
			with, err := inside()
			if err != nil {
				return nil, err
			}
			without, err := outside()
			return []float64{milliseconds(with.wall), milliseconds(with.wall - without.wall)}, err
		}, func() ([]float64, error) {
			direct, err := b.helper(ctx, "floor-commands")
			values := []float64{milliseconds(direct.each(floorCommands).wall)}
			if err != nil || wrapper == nil {
				return values, err
			}
			wrapped, err := b.helper(ctx, append([]string{"floor-commands"}, wrapper...)...)
			return append(values, milliseconds(wrapped.each(floorCommands).wall)-values[0]), err
		})
	},
}

// requireNamespaces returns an error unless the trials of a run had the tier namespaces.
func requireNamespaces(c *client, run string, _ int) error {
	raw, err := c.call("run.status", map[string]any{"runId": run})
	if err != nil {
		return err
	}
	var status struct{ Sandbox record.Sandbox }
	if err := json.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("run.status: %w", err)
	}
	if status.Sandbox.Tier != record.TierNamespaces {
		return fmt.Errorf("%w: the tier of this machine is %s", errUnavailable, status.Sandbox.Tier)
	}
	return nil
}

// bubblewrap returns the command that starts `true` with bubblewrap; nil if it is not installed.
func bubblewrap(dir string) []string {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil
	}
	args := []string{bwrap, "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--bind", dir, dir, "--tmpfs", "/tmp"}
	for _, path := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc"} {
		if _, err := os.Stat(path); err == nil {
			args = append(args, "--ro-bind", path, path)
		}
	}
	return append(args, "true")
}
