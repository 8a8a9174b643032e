package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/proc"
	"waza/runner/sandbox"
	"waza/runner/workspace"
)

// maxSetupOutput limits how much of a setup command's output is kept for its error.
const maxSetupOutput = 8 << 10

// setUp runs the setup commands of the task in the workspace of an attempt, before the agent, and
// records what they left for it. Their time is not the agent's.
func (w *work) setUp(run context.Context, ws *workspace.Workspace) error {
	if err := w.runSetup(run, ws, "inputs.setup", w.Task.Inputs.Setup); err != nil {
		return err
	}
	ws.Prepared(run, w.env.blobs(w.Order), w.env.Pool.Redactor())
	return nil
}

// runSetup runs the commands of a key in a workspace while no agent works. They can take as long as the
// trial together. An error means that the agent must not continue.
func (w *work) runSetup(run context.Context, ws *workspace.Workspace, key string, lines []string) error {
	slow := fmt.Errorf("%s took longer than the trial's timeout of %v", key, w.Timeout)
	ctx, cancel := context.WithTimeoutCause(run, w.Timeout, slow)
	defer cancel()
	ctx, programs := proc.WithScope(ctx)
	defer programs.End()
	defer func(attempt context.Context) { ws.Ctx = attempt }(ws.Ctx)
	ws.Ctx = ctx
	dir, err := ws.Dir()
	if err != nil {
		return err
	}
	for i, line := range lines {
		if err := w.setUpWith(ctx, dir, line); err != nil {
			return fmt.Errorf("%s[%d] %q: %w", key, i, text.Clip(line, 200), err)
		}
	}
	return nil
}

// setUpWith runs one setup command in the task's sandbox. Nothing that it started remains.
func (w *work) setUpWith(ctx context.Context, dir, line string) error {
	out := &proc.Tail{Max: maxSetupOutput}
	environ := slices.Concat(w.environ, []string{"WAZA_WORKSPACE_DIR=" + dir, "WAZA_SUITE_DIR=" + w.Suite.Dir})
	err := proc.Run(ctx, proc.Command{
		Args: []string{"sh", "-c", line}, Dir: dir, Env: environ, Stdout: out, Stderr: out,
		Sandbox: w.env.openSandboxes().For(sandbox.View{
			Env: environ, Write: []string{dir}, Read: w.Suite.Mentioned("", line), Task: w.Task.Sandbox, Workspace: dir,
		}),
	})
	if said := strings.TrimSpace(out.String()); err != nil && said != "" {
		lines := strings.Split(said, "\n")
		err = fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return err
}

// openSandboxes returns the sandboxes of the run; nil for none.
func (e *Env) openSandboxes() *sandbox.Sandboxes {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sandboxes
}
