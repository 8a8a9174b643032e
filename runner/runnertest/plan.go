package runnertest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

// PlannedIDs returns the ids of a plan's tasks in order, or the reason why there is no plan.
func PlannedIDs(p *plan.Plan, err error) string {
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	var ids []string
	for _, task := range p.Tasks {
		ids = append(ids, task.ID)
	}
	return strings.Join(ids, " ")
}

// PlanOf returns the plan of a suite.
func PlanOf(t *testing.T, r *runner.Runner, files string) *plan.Plan {
	t.Helper()
	p, err := r.Planner().Plan(t.Context(), Load(t, r, files), record.Request{})
	require.NoError(t, err)
	return p
}
