package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	outputLine   = "The agent reads src/café.go and answers at length; line 42 is fine.\n"
	outputBytes  = 4_000_000
	floorOutputs = 20
)

var outputMeasure = measure{
	title: "Large output",
	rows: []row{
		{name: "trial with an output of 4 MB, wall time", unit: "ms"},
		{name: "trial with an output of 4 MB", unit: "ms", target: target{most: 30}},
	},
	how: "A client runs trials whose program, `cat`, prints 4 MB of text, one after the other. A text grader searches them. Then the " +
		"client asks for each trial with `run.trial`. The figure is the difference between a run of 22 and a run of 2 trials, divided by " +
		"20: its wall time, and the processor time of the daemon and `cat`. The environment of the daemon contains no keys to redact.",
	floor: "A program starts `cat`, reads the text, computes its SHA-256, and writes it to a file.",
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		file := filepath.Join(b.dir, "output.txt")
		if err := os.WriteFile(file, []byte(strings.Repeat(outputLine, outputBytes/len(outputLine))), 0o600); err != nil {
			return nil, err
		}
		suite := func(trials int) string {
			return settings("command", trials, 1, fmt.Sprintf("  command: [cat, %q]", file)) +
				"graders: [{name: long, type: text, config: {contains: [at length]}}]\ntasks: [{id: a, prompt: x}]\n"
		}
		s := sequence{suite: suite, few: 2, many: 22, after: readTrials}
		return b.sequence(ctx, b.rounds(5, 2), s, func() ([]float64, error) {
			u, err := b.helper(ctx, "floor-output", file, strconv.Itoa(floorOutputs))
			return u.each(floorOutputs).milliseconds(), err
		})
	},
}

// readTrials asks for each trial of a run.
func readTrials(c *client, run string, trials int) error {
	for n := range trials {
		if _, err := c.call("run.trial", map[string]any{"runId": run, "taskId": "a", "trial": n + 1}); err != nil {
			return err
		}
	}
	return nil
}

// copyOutputs reads a text from a program, hashes it, and writes it to a file, so many times.
func copyOutputs(args []string) error {
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	copied := args[0] + ".copy"
	defer os.Remove(copied)
	for range times {
		text, err := exec.Command("cat", args[0]).Output()
		if err != nil {
			return err
		}
		_ = sha256.Sum256(text)
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
