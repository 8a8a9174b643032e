package runner

import (
	"context"

	"waza/runner/provider"
)

// Amendment lets tests amend runs as graders and reviewers do.
type Amendment = amendment

func (r *Runner) Amend(ctx context.Context, id string, change func(context.Context, *Amendment) error) error {
	return r.amend(ctx, id, change)
}

func (a *amendment) Trial(task, num int) (*TrialResult, error) { return a.trial(task, num) }

func (a *amendment) Replace(task int, was Verdict, res *TrialResult) error {
	return a.replace(task, was, res)
}

func (a *amendment) SetCriteria(c Criteria) { a.setCriteria(c) }

func (a *amendment) Criteria() Criteria { return a.criteria }

func (a *amendment) Redact(secrets *provider.Redactor) { a.redact(secrets) }
