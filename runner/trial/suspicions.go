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
	return w.env.scan(w.Order, s, a.Left)
}

// suspicions returns the suspicious moves of a recorded trial by the rules and the task of today. If
// its workspace cannot be restored, it returns those that were found before.
func (r *RecordedTrial) suspicions(old *record.Trial, s *grader.Subject) []record.Suspicion {
	if s.Capabilities.Canned || !suspicion.Needed(r.Order.Task, old.Transcript, old.Workspace) {
		return nil
	}
	if old.Workspace != nil {
		root, err := s.Root()
		if err != nil {
			return old.Suspicions
		}
		root.Close()
	}
	return r.Env.scan(r.Order, s, old.Workspace)
}

// scan searches what graders see of an attempt.
func (e *Env) scan(o *record.Order, s *grader.Subject, workspace *record.Snapshot) []record.Suspicion {
	return suspicion.Scan(&suspicion.Trial{
		Suite: o.Suite, Task: o.Task, Prompt: s.Prompt, State: e.state(), GraderFiles: o.GraderFiles,
		Transcript: s.Transcript, Output: s.Output, Workspace: workspace, Open: s.Root, Redact: e.Pool.Redactor().Text,
	})
}

// state returns the state directory if the directory for workspaces is below one, else "".
func (e *Env) state() string {
	if work := filepath.Dir(e.Dir); filepath.Base(work) == files.WorkDir {
		return filepath.Dir(work)
	}
	return ""
}
