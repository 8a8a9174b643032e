package runner

import (
	"context"
	"os"

	"waza/runner/executor"
	"waza/runner/journal"
	"waza/runner/provider"
)

// Unrecorded lets runs keep nothing, to measure what keeping it costs.
func (r *Runner) Unrecorded() { r.unrecorded = true }

// Amendment lets tests amend runs as graders and reviewers do.
type Amendment = amendment

func (r *Runner) Amend(ctx context.Context, id string, change func(context.Context, *Amendment) error) error {
	return r.amender.amend(ctx, id, change)
}

func (a *amendment) Trial(task, num int) (*TrialResult, error) { return a.trial(task, num) }

func (a *amendment) Replace(task int, was Verdict, res *TrialResult) error {
	return a.replace(task, was, res)
}

func (a *amendment) SetCriteria(c Criteria) { a.setCriteria(c) }

func (a *amendment) Criteria() Criteria { return a.criteria }

func (a *amendment) Redact(secrets *provider.Redactor) { a.redact(secrets) }

func TakeSnapshot(ctx context.Context, dir string, blobs *journal.Blobs, secrets *provider.Redactor) *Snapshot {
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer root.Close()
	return takeSnapshot(ctx, root, nil, blobs, secrets)
}

func (s *Snapshot) Restore(dir string, blobs *journal.BlobReader) error { return s.restore(dir, blobs) }

func (s *Snapshot) Lost(path string) error { return s.lost(path) }

// DigestOf names what an agent did in a run.
func DigestOf(runID, output string, transcript []executor.Entry) string {
	return newNormalizer(runID).digest(output, transcript)
}
