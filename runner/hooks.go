package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/record"
)

// maxHookOutput limits how much of a hook's output is kept for the log.
const maxHookOutput = 8 << 10

// hooks runs the hooks of a run. It owns the processes that hooks without a sandbox start, which can
// run until the run ends.
type hooks struct {
	plan     *plan.Plan
	logf     func(level, format string, args ...any)
	programs *proc.Scope // of the run's context
}

func newHooks(p *plan.Plan, logf func(level, format string, args ...any)) *hooks {
	return &hooks{plan: p, logf: logf}
}

// end ends the processes that hooks left.
func (k *hooks) end() { k.programs.End() }

// A shell runs one command in a directory, collects its output, and returns its exit code. An error
// means that it has none.
type shell func(ctx context.Context, dir, command string, out *proc.Limited) (code int, err error)

// outside returns a shell that runs commands with an environment and without a sandbox.
func outside(env []string) shell {
	return func(ctx context.Context, dir, command string, out *proc.Limited) (int, error) {
		err := proc.Run(ctx, proc.Command{Args: []string{"sh", "-c", command}, Dir: dir, Env: env, Stdout: out, Stderr: out})
		var exit *proc.ExitError
		if errors.As(err, &exit) && exit.Code >= 0 {
			return exit.Code, nil
		}
		return 0, err
	}
}

// run runs the hooks in order, each within timeout. It stops at the first failed hook that
// must not fail and returns its error. Failures of other hooks are logged.
func (k *hooks) run(ctx context.Context, when string, list []surroundings.Hook, timeout time.Duration, sh shell) error {
	for _, h := range list {
		err := k.runOne(ctx, when, h, timeout, sh)
		if err == nil {
			continue
		}
		if h.ErrorOnFail || ctx.Err() != nil {
			return err
		}
		k.logf("warning", "%v", err)
	}
	return nil
}

func (k *hooks) runOne(ctx context.Context, when string, h surroundings.Hook, timeout time.Duration, sh shell) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("took longer than %s", timeout))
	defer cancel()
	dir := k.plan.Suite.Dir
	if h.WorkingDirectory != "" {
		dir = filepath.Join(dir, h.WorkingDirectory)
		if filepath.IsAbs(h.WorkingDirectory) {
			dir = h.WorkingDirectory
		}
	}
	if err := k.checkScripts(h); err != nil {
		return fmt.Errorf("%s hook %q: %w", when, h.Command, err)
	}
	out := &proc.Limited{Max: maxHookOutput}
	code, err := sh(ctx, dir, h.Command, out)
	text := strings.TrimSpace(out.String())
	if text != "" && k.plan.Verbose {
		k.logf("info", "%s hook: %s", when, text)
	}
	accepted := h.ExitCodes
	if len(accepted) == 0 {
		accepted = []int{0}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s hook %q: %w%s", when, h.Command, err, outputTail(text))
	case !slices.Contains(accepted, code):
		return fmt.Errorf("%s hook %q: exit status %d%s", when, h.Command, code, outputTail(text))
	}
	return nil
}

// checkScripts returns an error if a script that a hook names changed since the run was planned:
// an agent must not change the programs that waza starts for the suite.
func (k *hooks) checkScripts(h surroundings.Hook) error {
	for _, path := range k.plan.Suite.Mentioned(h.WorkingDirectory, h.Command) {
		planned := k.plan.Files.Files[path]
		if planned == "" || !files.IsScript(path) {
			continue
		}
		if sum, err := files.Digest(path); err != nil || sum != planned {
			return &record.ChangedError{File: path}
		}
	}
	return nil
}

// outputTail returns the last lines of a program's output for an error message.
func outputTail(text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return ": " + strings.Join(lines[max(0, len(lines)-3):], " | ")
}
