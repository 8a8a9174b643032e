package plan

import (
	"fmt"

	"waza/eval"
	"waza/eval/surroundings"
	"waza/runner/internal/checkout"
	"waza/runner/record"
)

// repoError reports that a repository of a task cannot be checked out into workspaces.
type repoError struct {
	task *eval.Task
	repo *surroundings.Repo
	err  error
}

func (e *repoError) Error() string { return fmt.Sprintf("task %s: repos: %v", e.task.ID, e.err) }

func (e *repoError) Unwrap() error { return e.err }

// checkouts returns the initial commits of a task's workspaces. A name resolves to the same
// commit in all tasks and trials of a run, even if the repository changes in the meantime.
func (d *Digests) checkouts(t *eval.Task) ([]record.Checkout, error) {
	var list []record.Checkout
	for i := range t.Inputs.Repos {
		r := &t.Inputs.Repos[i]
		key := [2]string{r.Dir, r.Commit}
		id, known := d.commits[key]
		if !known {
			var err error
			if id, err = checkout.Resolve(d.Ctx, r.Dir, r.Commit); err != nil {
				return nil, &repoError{t, r, err}
			}
			d.commits[key] = id
		}
		list = append(list, record.Checkout{Source: r.Dir, Name: r.Commit, Commit: id, Dest: r.Dest})
	}
	return list, nil
}
