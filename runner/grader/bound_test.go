package grader_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

func TestBound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		grade graderFunc
		want  record.Grade
	}{
		{"as it is", func() (grader.Score, error) {
			return grader.Score{Score: 0.5, Feedback: "half", Details: []int{1}}, nil
		},
			record.Grade{Score: 0.5, Feedback: "half", Details: []int{1}}},
		{
			"too much", func() (grader.Score, error) { return grader.Score{Score: 7, Passed: true}, nil },
			record.Grade{Error: "the score is 7, expected a number from 0 to 1"},
		},
		{
			"too much by rounding",
			func() (grader.Score, error) { return grader.Score{Score: 1 + 1e-15, Passed: true}, nil },
			record.Grade{Score: 1, Passed: true},
		},
		{
			"too little", func() (grader.Score, error) { return grader.Score{Score: math.Inf(-1)}, nil },
			record.Grade{Error: "the score is -Inf, expected a number from 0 to 1"},
		},
		{
			"not a number",
			func() (grader.Score, error) { return grader.Score{Score: math.NaN(), Passed: true}, nil },
			record.Grade{Error: "the score is NaN, expected a number from 0 to 1"},
		},
		{
			"error",
			func() (grader.Score, error) { return grader.Score{Score: 1, Passed: true}, errors.New("no \xff") },
			record.Grade{Error: "no \uFFFD"},
		},
		{"bytes", func() (grader.Score, error) { return grader.Score{Feedback: "\xff"}, nil }, record.Grade{Feedback: "\uFFFD"}},
		{"review", func() (grader.Score, error) { return grader.Score{NeedsReview: true}, nil }, record.Grade{NeedsReview: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := grader.NewBound("g", "typ", 2, tc.grade).Grade(context.Background(), gradertest.Subject(""))
			require.Equal(t, tc.want.Error != "", err != nil)
			tc.want.Name, tc.want.Type, tc.want.Weight, tc.want.DurationMS = "g", "typ", 2, got.DurationMS
			require.Equal(t, tc.want, got)
		})
	}
}

func TestBoundPanic(t *testing.T) {
	t.Parallel()
	got, err := grader.NewBound("", "typ", 0, graderFunc(func() (grader.Score, error) { panic("oh") })).Grade(context.Background(),
		gradertest.Subject(""))
	require.ErrorContains(t, err, "panic: oh")
	require.Equal(t, "typ", got.Name)
	require.Equal(t, 1.0, got.Weight)
}

func TestBoundWeight(t *testing.T) {
	t.Parallel()
	for given, want := range map[float64]float64{0: 1, -3: 1, 0.5: 0.5, math.Inf(1): 1} {
		require.Equal(t, want, grader.NewBound("", "t", given, nil).Weight)
	}
	require.Equal(t, 1.0, grader.NewBound("", "t", math.NaN(), nil).Weight)
}

func TestBoundCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := grader.NewBound("", "t", 1, graderFunc(func() (grader.Score, error) { return grader.Score{Passed: true}, nil })).Grade(ctx,
		gradertest.Subject(""))
	require.ErrorIs(t, err, context.Canceled)
}

func TestResultJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(record.Grade{
		Name: "n", Type: "t", Score: 0.5, Weight: 1, Feedback: "f", Details: []grader.Check{{Check: "c"}},
		DurationMS: 3,
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"n","type":"t","score":0.5,"passed":false,"weight":1,"feedback":"f",`+
		`"details":[{"check":"c","passed":false}],"durationMs":3}`,
		string(data))
}

type graderFunc func() (grader.Score, error)

func (f graderFunc) Grade(context.Context, *grader.Subject) (grader.Score, error) { return f() }
