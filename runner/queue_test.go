package runner

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/eval"
	"waza/runner/plan"
	"waza/runner/record"
)

// TestQueue simulates workers at random. Each pending trial is handed out once, no kept one is,
// and none before the trial that it waits for. Some worker always has work, and the number of
// workers limits the trials set aside.
func TestQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 6).Draw(t, "workers")
		hooks := rapid.Bool().Draw(t, "hooks")
		// keep chooses trials of an earlier session.
		keep := func(task *taskRun) {
			if rapid.Bool().Draw(t, "resumed") {
				task.kept = rapid.SliceOfN(rapid.Bool(), task.Trials, task.Trials).Draw(t, "kept")
			}
			task.left = toDo(task)
		}
		var tasks []*taskRun
		for i := range rapid.IntRange(1, 5).Draw(t, "tasks") {
			trials, first := rapid.IntRange(1, 4).Draw(t, "trials"), rapid.IntRange(1, 3).Draw(t, "first")
			task := &taskRun{Task: &plan.Task{
				Task: &eval.Task{}, ID: fmt.Sprint(i), Trials: trials, First: first, Compares: rapid.Bool().Draw(t, "compares"),
			}}
			keep(task)
			if rapid.Bool().Draw(t, "baseline") {
				base := &taskRun{
					Task: &plan.Task{Task: &eval.Task{}, ID: fmt.Sprint(i, "#baseline"), Trials: trials, First: first, Role: record.RoleBaseline},
				}
				keep(base)
				task.baseline = base
				tasks = append(tasks, base)
			}
			tasks = append(tasks, task)
		}
		q := newQueue(tasks, hooks)
		type trial struct {
			task *taskRun
			num  int
		}
		var running []trial
		over := map[trial]bool{}
		given := 0
		end := func(i int) {
			tr := running[i]
			running = slices.Delete(running, i, i+1)
			over[tr] = true
			tr.task.left--
			q.ended(tr.task, &record.Trial{TrialNum: tr.num, Verdict: record.Passed, Output: fmt.Sprint(tr.num)}, tr.task.left == 0)
		}
		for {
			if len(running) == workers || len(running) > 0 && rapid.Bool().Draw(t, "end") {
				end(rapid.IntRange(0, len(running)-1).Draw(t, "which"))
				continue
			}
			next := q.nextLocked()
			task, num := next.taskRun, next.trial
			if task == nil && len(running) == 0 {
				break
			}
			if task == nil {
				end(rapid.IntRange(0, len(running)-1).Draw(t, "which"))
				continue
			}
			require.LessOrEqual(t, len(q.aside), workers)
			tr := trial{task, num}
			require.False(t, over[tr] || slices.Contains(running, tr), "handed out twice")
			require.True(t, num >= task.First && num < task.First+task.Trials)
			require.False(t, task.isKept(num-task.First), "kept")
			if base := task.baseline; base != nil && task.Compares && !base.isKept(num-task.First) {
				require.True(t, over[trial{base, num}], "before its baseline")
				require.Equal(t, fmt.Sprint(num), q.baseline(next).Output)
			}
			if base := task.baseline; base != nil && hooks {
				require.Zero(t, base.left)
			}
			running = append(running, tr)
			given++
		}
		total := 0
		for _, task := range tasks {
			total += toDo(task)
			for _, b := range task.queued.left {
				require.Nil(t, b, "outputs are let go")
			}
		}
		require.Equal(t, total, given)
		require.Zero(t, q.rest())
	})
}

func toDo(t *taskRun) (n int) {
	for i := range t.Trials {
		if !t.isKept(i) {
			n++
		}
	}
	return n
}

// When no more trials start, the remaining ones are returned, waiting or not.
func TestQueueRest(t *testing.T) {
	t.Parallel()
	base := &taskRun{left: 2, Task: &plan.Task{Trials: 2, First: 1, Role: record.RoleBaseline}}
	task := &taskRun{left: 2, baseline: base, Task: &plan.Task{Trials: 2, First: 1, Compares: true}}
	other := &taskRun{left: 1, Task: &plan.Task{Trials: 1, First: 7}}
	q := newQueue([]*taskRun{base, task, other}, false)
	open := func() bool { return false }
	q.claim(open)
	q.claim(open)
	require.Equal(t, turn{other, 7}, q.claim(open)) // both wait for this task
	for want := 1; want <= 2; want++ {
		require.Equal(t, turn{task, want}, q.rest())
	}
	require.Zero(t, q.rest())
	require.Zero(t, q.claim(open))
}
