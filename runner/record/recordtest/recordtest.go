// Package recordtest decodes results of runs in tests, and finds their tasks and trials by id
// and number instead of position. Call [Decode] for the output of waza run --json, run.result
// and WriteResult, then [Result.Task] and [Result.Trial].
package recordtest

import (
	"encoding/json"
	"reflect"
	"testing"

	"waza/runner/record"
)

// Result is the decoded result of a run.
type Result struct {
	RunID   string          `json:"runId"`
	Status  record.Status   `json:"status"`
	Error   string          `json:"error"`
	Summary *record.Summary `json:"summary"`
	Config  map[string]any  `json:"config"`
	Sandbox *record.Sandbox `json:"sandbox"`
	Tasks   []Task          `json:"tasks"`
}

// Task is a task of a result with its trials.
type Task struct {
	record.TaskRef
	record.Task
	Trials []record.Trial `json:"trials"`
}

// Decode decodes a result. It fails the test when the text is not a result.
func Decode(t testing.TB, text []byte) *Result {
	t.Helper()
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("not a result: %v\n%s", err, text)
	}
	return &r
}

// Task returns the task with the given id. It fails the test unless there is exactly one.
func (r Result) Task(t testing.TB, id string) *Task {
	t.Helper()
	return One(t, "task", id, r.Tasks, func(task Task) string { return task.ID })
}

// Trial returns the trial with the given number of the task with the given id. It fails the test
// unless there is exactly one.
func (r Result) Trial(t testing.TB, id string, num int) *record.Trial {
	t.Helper()
	return r.Task(t, id).Trial(t, num)
}

// Trial returns the trial with the given number. It fails the test unless there is exactly one.
func (task Task) Trial(t testing.TB, num int) *record.Trial {
	t.Helper()
	return One(t, "trial of "+task.ID, num, task.Trials, func(trial record.Trial) int { return trial.TrialNum })
}

// ByID returns the element of the list whose field ID is id. It fails the test unless there is
// exactly one.
func ByID[T any](t testing.TB, list []T, id string) T {
	t.Helper()
	return *One(t, "element", id, list, func(e T) string { return idOf(e) })
}

// IDs returns the ids of a list in its order, for tests of the order.
func IDs[T any](list []T) []string {
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = idOf(e)
	}
	return ids
}

func idOf(e any) string { return reflect.Indirect(reflect.ValueOf(e)).FieldByName("ID").String() }

// One returns the element of the list with the given key. It fails the test unless there is
// exactly one; what names the element in the failure message.
func One[T any, K comparable](t testing.TB, what string, key K, list []T, keyOf func(T) K) *T {
	t.Helper()
	var found *T
	for i := range list {
		switch {
		case keyOf(list[i]) != key:
		case found != nil:
			t.Fatalf("%s %v: found more than one", what, key)
		default:
			found = &list[i]
		}
	}
	if found == nil {
		t.Fatalf("%s %v: not found in list of %d", what, key, len(list))
	}
	return found
}
