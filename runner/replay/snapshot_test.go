package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// Snapshots share the places of ended tasks. They stay as they are when a resumed session drops
// trials of such a task, or an amendment replaces them, and so do snapshots of snapshots.
func TestSnapshotStays(t *testing.T) {
	t.Parallel()
	ended := func(num int) *record.Event {
		return &record.Event{Type: record.TrialComplete, Time: time.Unix(1, 0), TaskID: "a", TrialNum: num, Verdict: record.Passed}
	}
	result := &record.Event{
		Type: record.TaskComplete, TaskID: "a", Task: &record.Task{Verdict: record.Passed, Trials: record.TrialCounts{Counts: record.Counts{Total: 2, Passed: 2}}},
	}
	changes := map[string][]*record.Event{
		"resumed": {{Type: record.RunResumed, Kept: map[string][]record.TrialRange{"a": {{2, 2}}}}},
		"graded": {
			{Type: record.TrialGraded, TaskID: "a", TrialNum: 1, Verdict: record.Failed},
			{Type: record.TaskGraded, TaskID: "a", Task: &record.Task{Verdict: record.Failed}},
			{Type: record.RunGraded, Summary: &record.Summary{}},
		},
	}
	for name, events := range changes {
		f := NewFold(NewState(&record.Run{Tasks: []record.TaskRef{{ID: "a", First: 1, Trials: 2}}}), nil)
		f.Apply([]*record.Event{ended(1), ended(2), result}, []Place{{Off: 10, Size: 5}, {Off: 20, Size: 5}, {}})
		first, second := f.Snapshot(), f.Snapshot()
		require.Same(t, &first.Tasks[0].Trials[0], &second.Tasks[0].Trials[0], "%s: the places are shared", name)
		want := Place{Off: 10, Size: 5, Verdict: CodeOf(record.Passed)}
		f.Apply(events, []Place{{Off: 30, Size: 5}, {}, {}}[:len(events)])
		require.Equal(t, want, first.Tasks[0].Trials[0], name)
		require.NotEqual(t, want, f.Place(KeyOf(0, 0)), name)
		third := first.clone()
		for _, e := range events {
			first.Apply(e, Place{Off: 40, Size: 5})
		}
		require.NotEqual(t, want, first.Tasks[0].Trials[0], name)
		require.Equal(t, want, second.Tasks[0].Trials[0], name)
		require.Equal(t, want, third.Tasks[0].Trials[0], name)
	}
}
