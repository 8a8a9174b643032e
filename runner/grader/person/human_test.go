package person

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

func TestHuman(t *testing.T) {
	t.Parallel()
	shouting := func(s *grader.Subject) { s.Expand = func(text string) string { return text + "!" } }
	for _, c := range []struct {
		typ, config string
		want        record.Review
	}{
		{"human", "{}", record.Review{Instructions: "!", Threshold: 0.5}},
		{
			"human", "instructions: look\ncriteria: [a, b]\nthreshold: 0.8",
			record.Review{Instructions: "look!", Criteria: []string{"a!", "b!"}, Threshold: 0.8},
		},
		{"human", "pass_score: 1", record.Review{Instructions: "!", Threshold: 1}},
		{
			"human_calibration", "calibrate_grader: g\ncriteria: [a]\nthreshold: 0.25",
			record.Review{Instructions: "!", Criteria: []string{"a!"}, Threshold: 0.25, Calibrates: "g"},
		},
	} {
		b, _ := gradertest.Bind(t, c.typ, c.config, nil)
		r, err := b.Grade(context.Background(), gradertest.Subject("", shouting))
		require.NoError(t, err)
		require.True(t, r.NeedsReview && r.AsksPerson() && !r.Scored())
		require.Equal(t, c.typ == "human_calibration", r.Calibrates())
		require.Empty(t, cmp.Diff(c.want, r.Review()))
		require.Empty(t, cmp.Diff(c.want, reread(t, r).Review()), "from a record")
	}
}

// reread encodes and decodes a result, as if it were read from a record.
func reread(t *testing.T, r record.Grade) *record.Grade {
	t.Helper()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	back := new(record.Grade)
	require.NoError(t, json.Unmarshal(b, back))
	return back
}

func TestHumanOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "human", []gradertest.OptionCase{
		{"nothing", "{}", "", nil},
		{"always passes", "threshold: 0", "checks-nothing: every score passes", nil},
		{"too much", "threshold: 1.5", "invalid-value: threshold", nil},
		{"not a list", "criteria: 3", "wrong-type: criteria", nil},
		{"unknown", "instruction: x", "unknown-option: instruction", nil},
	})
	gradertest.RunOptions(t, "human_calibration", []gradertest.OptionCase{
		{"nothing", "{}", "missing-field: calibrate_grader", nil},
		{"blank", "calibrate_grader: ' '", "missing-field: calibrate_grader", nil},
		{"always passes", "calibrate_grader: g\nthreshold: 0", "checks-nothing: every score passes", nil},
	})
}

func TestCalibrationPreflight(t *testing.T) {
	t.Parallel()
	k, _ := gradertest.Registry.Lookup("human_calibration")
	for name, want := range map[string]string{
		"g": "", "gg": `calibrate_grader: no grader is named "gg", so there is nothing to compare with (did you mean "g"?)`,
		"quality": `calibrate_grader: no grader is named "quality", so there is nothing to compare with`,
	} {
		suite, ds := gradertest.Load(t, "human_calibration", "calibrate_grader: "+name, nil)
		require.Empty(t, ds)
		found := k.Preflight(context.Background(), suite.Graders, &grader.Env{Suite: suite, Workers: 1})
		if want == "" {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1)
		require.Equal(t, want, found[0].Message)
	}
}

func pending(name, typ string, details record.Review) record.Grade {
	return record.Grade{Name: name, Type: typ, Weight: 1, NeedsReview: true, Details: details}
}

func TestSetReview(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	r := pending("h", "human", record.Review{Instructions: "look", Threshold: 0.7})
	for score, passed := range map[float64]bool{0: false, 0.69: false, 0.7: true, 1: true, 0.7 - 1e-12: true} {
		require.NoError(t, SetReview(&r, score, "  so\xff so\n", "Ada", at))
		require.Equal(t, passed, r.Passed, score)
		require.Equal(t, score, r.Score)
		require.False(t, r.NeedsReview)
		require.Equal(t, "so\uFFFD so", r.Feedback)
		require.Equal(t, record.Review{Instructions: "look", Threshold: 0.7, Reviewer: "Ada", ReviewedAt: &at}, reread(t, r).Review())
	}
	for _, score := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		require.ErrorContains(t, SetReview(&r, score, "", "", at), "from 0 to 1")
	}
	require.ErrorContains(t, SetReview((&record.Grade{Name: "x", Type: "text"}), 1, "", "", at),
		`grader "x" has type text, which does not ask a person`)
	require.ErrorContains(t, SetReview((&record.Grade{Name: "x", Type: "human", Error: "gone"}), 1, "", "", at), "could not do its work: gone")
	odd := record.Grade{Name: "h", Type: "human", NeedsReview: true, Details: "rubbish"}
	require.NoError(t, SetReview(&odd, 0.5, "", "", at))
	require.True(t, odd.Passed)
}

func TestCompare(t *testing.T) {
	t.Parallel()
	at := time.Now()
	judge := record.Grade{Name: "judge", Type: "prompt", Score: 0.75, Passed: true}
	results := []record.Grade{judge, pending("c", "human_calibration", record.Review{Threshold: 0.5, Calibrates: "judge"})}
	Compare(results)
	require.Nil(t, results[1].Review().Comparison, "no person's score yet")

	require.NoError(t, SetReview(&results[1], 0.25, "", "", at))
	Compare(results)
	want := &record.Calibration{Person: 0.25, Grader: 0.75, GraderPassed: true, Difference: 0.5}
	require.Empty(t, cmp.Diff(want, results[1].Review().Comparison))

	results[1] = *reread(t, results[1])
	results[0].Score, results[0].Passed = 0.25, false // graded again
	Compare(results)
	require.Empty(t, cmp.Diff(&record.Calibration{Person: 0.25, Grader: 0.25, Agree: true}, results[1].Review().Comparison))

	results[0].Error = "unreachable"
	Compare(results)
	require.Nil(t, results[1].Review().Comparison, "nothing to compare with any more")
}

func TestKeepReviews(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	before := []record.Grade{
		pending("a", "human", record.Review{Threshold: 0.5}), pending("b", "human", record.Review{Threshold: 0.5}),
		pending("c", "human", record.Review{Threshold: 0.5}), {Name: "d", Type: "text", Score: 1, Passed: true},
	}
	require.NoError(t, SetReview(&before[0], 0.6, "fine", "Ada", at))
	require.NoError(t, SetReview(&before[1], 0.6, "fine", "Ada", at))
	before[0] = *reread(t, before[0])
	results := []record.Grade{
		pending("a", "human", record.Review{Threshold: 0.8, Instructions: "today's"}), // the suite requires a higher score now
		pending("b", "human_calibration", record.Review{Threshold: 0.5}),              // a different question
		pending("c", "human", record.Review{Threshold: 0.5}), pending("d", "human", record.Review{Threshold: 0.5}),
	}
	KeepReviews(results, before)
	require.Equal(t, 0.6, results[0].Score)
	require.False(t, results[0].Passed || results[0].NeedsReview)
	require.Equal(t, "fine", results[0].Feedback)
	require.Empty(t, cmp.Diff(record.Review{Threshold: 0.8, Instructions: "today's", Reviewer: "Ada", ReviewedAt: &at}, results[0].Review()))
	for _, r := range results[1:] {
		require.True(t, r.NeedsReview, r.Name)
	}
}

// Two graders of one name once both got the score of the last one.
func TestKeepReviewsOfOneName(t *testing.T) {
	t.Parallel()
	ask := func() []record.Grade {
		return []record.Grade{pending("a", "human", record.Review{Threshold: 0.5}), pending("a", "human", record.Review{Threshold: 0.5})}
	}
	before, results := ask(), ask()
	require.NoError(t, SetReview(&before[0], 0.2, "", "", time.Now()))
	KeepReviews(results, before)
	require.True(t, results[1].NeedsReview)
	require.NoError(t, SetReview(&before[1], 0.9, "", "", time.Now()))
	KeepReviews(results, before)
	require.Equal(t, []float64{0.2, 0.9}, []float64{results[0].Score, results[1].Score})
}
