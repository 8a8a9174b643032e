package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// peers compare waza with other tools that are installed on this machine. The value of a figure is
// that of the peer, and its floor that of waza for the same work in the same run.
func peers() []measure { return []measure{promptfooMeasure} }

const fewCases, manyCases = 100, 1100

var promptfooMeasure = measure{
	title: "promptfoo",
	rows: []row{
		{name: "promptfoo: print the version", unit: "ms"},
		{name: "promptfoo: a test case, wall time", unit: "ms"},
		{name: "promptfoo: a test case, processor time", unit: "ms"},
	},
	how: fmt.Sprintf("`promptfoo eval` with the provider `echo` and one `contains` assertion for each test case, 8 at a time, without "+
		"cache and table; `waza run` with the executor `mock` and one text grader for each task, 8 at a time. A test case is the "+
		"difference between %s and %d, divided by %s.", digits(manyCases), fewCases, digits(manyCases-fewCases)),
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		program := filepath.Join(b.promptfoo, "node_modules", ".bin", "promptfoo")
		return besideFloor(b.rounds(3, 1), func() ([]float64, error) {
			return b.cases(ctx, promptfooSuite, func(suite string) []string {
				return []string{program, "eval", "-c", suite, "-j", "8", "--no-cache", "--no-table", "--no-progress-bar", "--no-write"}
			}, []string{program, "--version"})
		}, func() ([]float64, error) {
			return b.cases(ctx, func(cases int) (string, string, error) { return "eval.yaml", mockSuite(cases, 1, busyWorkers), nil },
				func(suite string) []string { return []string{b.program, "run", suite} }, []string{b.program, "version"})
		})
	},
}

// promptfooVersion returns the version that is installed in a directory.
func promptfooVersion(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "promptfoo", "package.json"))
	if err != nil {
		return "", fmt.Errorf("-promptfoo: %w; npm install promptfoo installs it there", err)
	}
	var pkg struct{ Version string }
	err = json.Unmarshal(text, &pkg)
	return pkg.Version, err
}

// promptfooSuite returns the name and the text of a configuration with so many test cases.
func promptfooSuite(cases int) (name, text string, err error) {
	tests := make([]any, cases)
	for i := range tests {
		tests[i] = map[string]any{"vars": map[string]any{"n": fmt.Sprint(i)}}
	}
	encoded, err := json.Marshal(map[string]any{
		"prompts": []string{"say {{n}}"}, "providers": []string{"echo"}, "tests": tests,
		"defaultTest": map[string]any{"assert": []any{map[string]any{"type": "contains", "value": "say"}}},
	})
	return "promptfooconfig.json", string(encoded), err
}

// cases measures a command line tool: the milliseconds until it has printed its version, and the
// wall and processor time of a test case.
func (b *bench) cases(
	ctx context.Context, suite func(cases int) (name, text string, err error), run func(suite string) []string, version []string,
) ([]float64, error) {
	start, err := b.commandLine(ctx, version)
	if err != nil {
		return nil, err
	}
	u, err := additional(func(cases int) (used, error) {
		dir, err := os.MkdirTemp(b.dir, "peer")
		if err != nil {
			return used{}, err
		}
		defer os.RemoveAll(dir)
		name, text, err := suite(cases)
		if err != nil {
			return used{}, err
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return used{}, err
		}
		return b.commandLine(ctx, run(file))
	}, fewCases, manyCases)
	return append([]float64{milliseconds(start.wall)}, u.each(manyCases-fewCases).milliseconds()...), err
}

// commandLine runs a program and returns the time that it uses.
func (b *bench) commandLine(ctx context.Context, args []string) (used, error) {
	state, err := os.MkdirTemp(b.dir, "state")
	if err != nil {
		return used{}, err
	}
	defer os.RemoveAll(state)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(b.environment(state), "PROMPTFOO_CONFIG_DIR="+state, "PROMPTFOO_DISABLE_TELEMETRY=1", "PROMPTFOO_DISABLE_UPDATE=1")
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return used{}, fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	return used{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(start)}, nil
}
