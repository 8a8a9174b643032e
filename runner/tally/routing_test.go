package tally_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// routedTo returns a trial with these expected and actual recipients.
func routedTo(num int, verdict record.Verdict, expected, took []string) *record.Trial {
	return &record.Trial{TrialNum: num, Verdict: verdict, Routing: &record.Routing{Expected: expected, Took: took, Reason: "because"}}
}

// Numbers worked out by hand. Weights are those of trials in their task:
//
//	task  trials                          each
//	one   notebook → notebook ×2          1/3
//	      notebook → calendar             1/3
//	two   calendar → calendar             1
//	both  calendar, notebook → notebook   1/2
//	      both → both                     1/2
//	none  nobody → music                  1/2
//	      nobody → nobody                 1/2
//	late  music → a timeout               1
//	      an error                        not counted
//
//	notebook  TP 2/3 + 1/2 + 1/2 = 5/3   FP 0     FN 1/3
//	calendar  TP 1 + 1/2 = 3/2           FP 1/3   FN 1/2
//	music     TP 0                       FP 1/2   FN 1
//	right     2/3 + 1 + 1/2 + 1/2 = 8/3 of 5 tasks
func TestRouting(t *testing.T) {
	t.Parallel()
	const notebook, calendar, music = "notebook", "calendar", "music"
	rec := &record.Run{
		Tasks: []record.TaskRef{
			{ID: "one"}, {ID: "two"}, {ID: "both"}, {ID: "none"}, {ID: "late"}, {ID: "silent"},
			{ID: "test", Role: record.RoleTrigger},
		},
	}
	run := tally.NewDraft(rec)
	nobody, both := []string{}, []string{calendar, notebook}
	for _, x := range []struct {
		task  int
		trial *record.Trial
	}{
		{0, routedTo(3, record.Failed, []string{notebook}, []string{calendar})},
		{0, routedTo(1, record.Passed, []string{notebook}, []string{notebook})},
		{0, routedTo(2, record.NeedsReview, []string{notebook}, []string{notebook})},
		{1, routedTo(1, record.Failed, []string{calendar}, []string{calendar})}, // because of another grader
		{2, routedTo(1, record.Failed, both, []string{notebook})},
		{2, routedTo(2, record.Passed, both, both)},
		{3, routedTo(1, record.Failed, nobody, []string{music})},
		{3, routedTo(2, record.Passed, nobody, nobody)},
		{4, routedTo(1, record.TimedOut, []string{music}, nobody)},
		{4, routedTo(2, record.Errored, []string{music}, nobody)},
		{4, routedTo(3, record.Cancelled, []string{music}, nobody)},
		{5, routedTo(1, record.Passed, nil, []string{music})},
		{6, routedTo(1, record.Passed, []string{music}, []string{music})},
	} {
		run.AddTrial(x.task, x.trial)
	}
	r := run.Summary(nil).Routing
	require.Equal(t, []int{5, 9, 1, 1, 0}, []int{r.Tasks, r.Trials, r.Errors, r.Timeouts, r.Rerouted})
	near := func(want float64, got *float64) {
		t.Helper()
		require.NotNil(t, got)
		require.InDelta(t, want, *got, 1e-12)
	}
	near(8.0/15, r.Accuracy)
	part := func(right, n int) stats.Part { return stats.RatePart(stats.Share{Passed: right, N: n}) }
	accuracy, _ := stats.MeanOver([]stats.Part{part(2, 3), part(1, 1), part(1, 2), part(1, 2), part(0, 1)}, stats.DefaultConfidence)
	require.Equal(t, accuracy.Interval, *r.AccuracyInterval)
	require.Len(t, r.Clients, 3)
	c, m, n := r.Clients[0], r.Clients[1], r.Clients[2]
	require.Equal(t, []string{calendar, music, notebook}, []string{c.Client, m.Client, n.Client})
	near(1.5/(1.5+1.0/3), c.Precision)
	near(1.5/2, c.Recall)
	near(3/(3+1.0/3+0.5), c.F1)
	near(0, m.Precision)
	near(0, m.Recall)
	near(0, m.F1)
	near(1, n.Precision)
	near(5.0/3/2, n.Recall)
	near(19.0/6/(19.0/6+5.0/6), r.Precision)
	near(19.0/6/(19.0/6+11.0/6), r.Recall)
	near(2*19.0/6/(2*19.0/6+5.0/6+11.0/6), r.F1)
	got := []string{}
	for _, x := range r.Confusion {
		got = append(got, fmt.Sprintf("%v → %v %.3f %d", x.Expected, x.Took, x.Weight, x.Trials))
	}
	require.Equal(t, []string{
		"[] → [] 0.500 1", "[] → [music] 0.500 1", "[calendar] → [calendar] 1.000 1",
		"[calendar notebook] → [calendar notebook] 0.500 1", "[calendar notebook] → [notebook] 0.500 1",
		"[notebook] → [notebook] 0.667 2", "[notebook] → [calendar] 0.333 1",
	}, got)
	require.Equal(t, []record.Misroute{
		{TaskID: "one", TrialNum: 3, Expected: []string{notebook}, Took: []string{calendar}, Reason: "because"},
		{TaskID: "both", TrialNum: 1, Expected: both, Took: []string{notebook}, Reason: "because"},
		{TaskID: "none", TrialNum: 1, Expected: nobody, Took: []string{music}, Reason: "because"},
	}, r.Misroutes)
}

func TestNoRouting(t *testing.T) {
	t.Parallel()
	run := tally.NewDraft(&record.Run{Tasks: []record.TaskRef{{ID: "a"}}})
	run.AddTrial(0, &record.Trial{Verdict: record.Passed})
	run.AddTrial(0, routedTo(2, record.Passed, nil, []string{"a"}))
	require.Nil(t, run.Summary(nil).Routing, "no task expects recipients")

	run.AddTrial(0, routedTo(3, record.Errored, []string{"a"}, nil))
	r := run.Summary(nil).Routing
	require.Equal(t, []int{0, 1}, []int{r.Trials, r.Errors})
	require.Nil(t, r.Accuracy)
	require.Nil(t, r.AccuracyInterval)
	require.Nil(t, r.Precision)
}

// Cells of a matrix have their own numbers, without the lists of the run.
func TestRoutingOfCells(t *testing.T) {
	t.Parallel()
	old, better := &record.Cell{Name: "old"}, &record.Cell{Name: "better"}
	rec := &record.Run{Tasks: []record.TaskRef{{ID: "a[old]", Task: "a", Cell: old}, {ID: "a[better]", Task: "a", Cell: better}}}
	run := tally.NewDraft(rec)
	run.AddTrial(0, routedTo(1, record.Failed, []string{"notebook"}, []string{}))
	run.AddTrial(1, routedTo(1, record.Passed, []string{"notebook"}, []string{"notebook"}))
	s := run.Summary(nil)
	require.InDelta(t, 0.5, *s.Routing.Accuracy, 0)
	require.Len(t, s.Routing.Misroutes, 1)
	require.Len(t, s.Groups, 2)
	for i, want := range []float64{0, 1} {
		r := s.Groups[i].Routing
		require.InDelta(t, want, *r.Accuracy, 0)
		require.InDelta(t, want, *r.Clients[0].Recall, 0)
		require.Empty(t, r.Misroutes)
		require.Empty(t, r.Confusion)
	}
}

func TestRoutingLists(t *testing.T) {
	t.Parallel()
	rec := &record.Run{Tasks: []record.TaskRef{{ID: "a"}}}
	run := tally.NewDraft(rec)
	for i := range 700 {
		run.AddTrial(0, routedTo(i+1, record.Failed, []string{"a"}, []string{fmt.Sprintf("c-%03d", i)}))
	}
	run.AddTrial(0, routedTo(701, record.Failed, []string{"a"}, []string{"c-699"}))
	r := run.Summary(nil).Routing
	require.Equal(t, []int{500, 200, 200, 501}, []int{len(r.Confusion), r.ConfusionDropped, len(r.Misroutes), r.MisroutesDropped})
	require.Equal(t, 2, r.Confusion[0].Trials, "the heaviest are kept")
}

// TestAnyRouting counts random trials in another way, and in any order.
func TestAnyRouting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		set := func(label string) []string {
			drawn := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, label)
			slices.Sort(drawn)
			return drawn
		}
		rec, trials := &record.Run{}, map[int][]*record.Trial{}
		type at struct{ task, trial int }
		var order []at
		for i := range rapid.IntRange(0, 4).Draw(t, "tasks") {
			rec.Tasks = append(rec.Tasks, record.TaskRef{ID: fmt.Sprint(i)})
			for j := range rapid.IntRange(0, 4).Draw(t, "trials") {
				verdict := rapid.SampledFrom([]record.Verdict{record.Passed, record.Failed, record.Errored, record.TimedOut}).Draw(t, "verdict")
				trials[i] = append(trials[i], routedTo(j+1, verdict, append([]string{}, set("expected")...), append([]string{}, set("took")...)))
				order = append(order, at{i, j})
			}
		}
		run, again := tally.NewDraft(rec), tally.NewDraft(rec)
		for _, x := range order {
			run.AddTrial(x.task, trials[x.task][x.trial])
		}
		for _, x := range rapid.Permutation(order).Draw(t, "order") {
			again.AddTrial(x.task, trials[x.task][x.trial])
		}
		r := run.Summary(nil).Routing
		other := again.Summary(nil).Routing
		require.Equal(t, asJSON(t, r), asJSON(t, other), "the order does not matter")
		if len(order) == 0 {
			require.Nil(t, r)
			return
		}
		type counts struct{ tp, fp, fn float64 }
		want, tasks, right, lateWeight, timeouts := map[string]counts{}, 0.0, 0.0, 0.0, 0
		for i := range trials {
			counted := slices.DeleteFunc(slices.Clone(trials[i]), func(x *record.Trial) bool { return x.Verdict == record.Errored })
			if len(counted) > 0 {
				tasks++
			}
			for _, x := range counted {
				late := x.Verdict == record.TimedOut
				w, wrong := 1/float64(len(counted)), late
				if late {
					timeouts++
					lateWeight += w
				}
				for _, name := range names {
					c := want[name]
					switch e, g := slices.Contains(x.Routing.Expected, name), !late && slices.Contains(x.Routing.Took, name); {
					case e && g:
						c.tp += w
					case e:
						c.fn += w
						wrong = true
					case g:
						c.fp += w
						wrong = true
					}
					want[name] = c
				}
				if !wrong {
					right += w
				}
			}
		}
		got := map[string]counts{}
		for _, c := range r.Clients {
			got[c.Client] = counts{c.TruePositives, c.FalsePositives, c.FalseNegatives}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			require.InDelta(t, want[name].tp, got[name].tp, 1e-9)
			require.InDelta(t, want[name].fp, got[name].fp, 1e-9)
			require.InDelta(t, want[name].fn, got[name].fn, 1e-9)
		}
		weight, listed := 0.0, 0
		for _, c := range r.Confusion {
			weight += c.Weight
			listed += c.Trials
		}
		require.InDelta(t, tasks, weight+lateWeight, 1e-9, "each task weighs 1")
		require.Equal(t, timeouts, r.Timeouts)
		require.Equal(t, r.Trials, listed+timeouts)
		if tasks > 0 {
			require.InDelta(t, right/tasks, *r.Accuracy, 1e-9)
		}
	})
}

func asJSON(t require.TestingT, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
