package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waza/eval/surroundings"
)

// The suite of most measures: so many tasks, and workers that are never short of work.
const (
	someTasks   = 500
	manyTrials  = 100 // per task
	busyWorkers = 8
)

// suite writes a suite and returns its path.
func (b *bench) suite(text string) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "suite")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "eval.yaml")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// settings returns the settings of a suite without a sandbox.
func settings(executor string, trials, workers int, more ...string) string {
	return settingsIn(surroundings.SandboxOff, executor, trials, workers, more...)
}

// settingsIn returns the settings of a suite with a sandbox.
func settingsIn(mode surroundings.SandboxMode, executor string, trials, workers int, more ...string) string {
	return fmt.Sprintf("name: bench\nconfig:\n  executor: %s\n  sandbox: %s\n  trials_per_task: %d\n  parallel: true\n  workers: %d\n%s",
		executor, mode, trials, workers, strings.Join(append(more, ""), "\n"))
}

// mockSuite returns a suite of mock trials with one text grader each.
func mockSuite(tasks, trials, workers int) string {
	var b strings.Builder
	b.WriteString(settings("mock", trials, workers) + graders + "tasks:\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  - {id: t-%05d, name: T %d, prompt: say %d}\n", i, i, i)
	}
	return b.String()
}

const graders = "graders: [{name: has, type: text, config: {contains: [mock response]}}]\n"

// suiteOfFiles writes a suite of mock trials of the given latency with a file per task.
func (b *bench) suiteOfFiles(tasks, trials, workers int, latency time.Duration) (string, error) {
	file, err := b.suite(settings("mock", trials, workers, fmt.Sprintf("  mock: {latency_ms: %d}", latency.Milliseconds())) + graders + "tasks: [tasks/*.yaml]\n")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(file), "tasks")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for i := range tasks {
		text := fmt.Sprintf("id: t-%05d\nname: T %d\nprompt: say %d\n", i, i, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("t-%05d.yaml", i)), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return file, nil
}
