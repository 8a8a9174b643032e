package trial

import (
	"path/filepath"

	"waza/eval/files"
	"waza/runner/grader"
	"waza/runner/record"
	"waza/runner/suspicion"
)

// suspicions returns the suspicious moves of an attempt that is about to be graded. Canned replies
// are not searched, because no agent made them.
func (w *work) suspicions(a *Attempt, s *grader.Subject) []record.Suspicion {
	if w.caps.Canned || !suspicion.Needed(w.Task, a.Transcript, a.Left) {
		return nil
	}
	t := suspicion.Trial{
		Suite: w.Suite, Task: w.Task, Prompt: a.Prompt, State: w.env.state(), GraderFiles: w.GraderFiles,
		Transcript: a.Transcript, Output: a.Output, Workspace: a.Left, Open: s.Root, Redact: w.env.Pool.Redactor().Text,
	}
	return suspicion.Scan(&t)
}

// state returns the state directory if the directory for workspaces is below one, else "".
func (e *Env) state() string {
	if work := filepath.Dir(e.Dir); filepath.Base(work) == files.WorkDir {
		return filepath.Dir(work)
	}
	return ""
}
