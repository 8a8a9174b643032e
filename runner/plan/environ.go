package plan

import (
	"slices"

	"waza/eval"
)

// Environ is the environment of a task's processes: what they get of this process's,
// then the task's own, then those that say where they are.
func (t *Task) Environ(inherited []string, runID string) []string {
	env := slices.Clone(inherited)
	for k, v := range t.Inputs.Environment {
		env = append(env, k+"="+v)
	}
	for name, value := range t.Setup.params {
		env = append(env, eval.EnvName(name)+"="+value)
	}
	env = append(env, "WAZA_RUN_ID="+runID, "WAZA_TASK_ID="+t.Task.ID)
	return env[:len(env):len(env)]
}
