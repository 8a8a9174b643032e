package plan

import (
	"context"

	"waza/eval"
	"waza/runner/executor/mock"
	"waza/runner/record"
)

// TaskIDs returns the ids of the suite's tasks that a run of the request would execute, each once. A
// suite need not name an executor, as its tasks are the same for all.
func (r *Planner) TaskIDs(ctx context.Context, suite *eval.Suite, req record.Request) ([]string, error) {
	if len(suite.Tasks) == 0 {
		return nil, nil
	}
	if suite.Config.Executor == "" && req.Executor == "" {
		req.Executor = mock.Kind.Name
	}
	planned, err := r.Plan(ctx, suite, req)
	if err != nil {
		return nil, err
	}
	defer planned.Close()
	var ids []string
	for _, t := range planned.Tasks {
		if t.Role != record.RoleTask {
			continue
		}
		if n := len(ids); n == 0 || ids[n-1] != t.Task.ID { // else it is a task of another cell of the matrix
			ids = append(ids, t.Task.ID)
		}
	}
	return ids, nil
}
