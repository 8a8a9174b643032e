package grader

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
)

func TestBound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		grade graderFunc
		want  record.Grade
	}{
		{"as it is", func() (Score, error) { return Score{Score: 0.5, Feedback: "half", Details: []int{1}}, nil },
			record.Grade{Score: 0.5, Feedback: "half", Details: []int{1}}},
		{"too much", func() (Score, error) { return Score{Score: 7, Passed: true}, nil }, record.Grade{Score: 1, Passed: true}},
		{"too little", func() (Score, error) { return Score{Score: math.Inf(-1)}, nil }, record.Grade{}},
		{"not a number", func() (Score, error) { return Score{Score: math.NaN(), Passed: true}, nil }, record.Grade{Error: "the score is not a number"}},
		{"error", func() (Score, error) { return Score{Score: 1, Passed: true}, errors.New("no \xff") }, record.Grade{Error: "no \uFFFD"}},
		{"bytes", func() (Score, error) { return Score{Feedback: "\xff"}, nil }, record.Grade{Feedback: "\uFFFD"}},
		{"review", func() (Score, error) { return Score{NeedsReview: true}, nil }, record.Grade{NeedsReview: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := NewBound("g", "typ", 2, tc.grade).Grade(context.Background(), subject(""))
			require.Equal(t, tc.want.Error != "", err != nil)
			tc.want.Name, tc.want.Type, tc.want.Weight, tc.want.DurationMS = "g", "typ", 2, got.DurationMS
			require.Equal(t, tc.want, got)
		})
	}
}

func TestBoundPanic(t *testing.T) {
	t.Parallel()
	got, err := NewBound("", "typ", 0, graderFunc(func() (Score, error) { panic("oh") })).Grade(context.Background(), subject(""))
	require.ErrorContains(t, err, "panic: oh")
	require.Equal(t, "typ", got.Name)
	require.Equal(t, 1.0, got.Weight)
}

func TestBoundWeight(t *testing.T) {
	t.Parallel()
	for given, want := range map[float64]float64{0: 1, -3: 1, 0.5: 0.5, math.Inf(1): 1} {
		require.Equal(t, want, NewBound("", "t", given, nil).Weight)
	}
	require.Equal(t, 1.0, NewBound("", "t", math.NaN(), nil).Weight)
}

func TestBoundCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := NewBound("", "t", 1, graderFunc(func() (Score, error) { return Score{Passed: true}, nil })).Grade(ctx, subject(""))
	require.ErrorIs(t, err, context.Canceled)
}

func TestResultJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(record.Grade{Name: "n", Type: "t", Score: 0.5, Weight: 1, Feedback: "f", Details: []Check{{Check: "c"}}, DurationMS: 3})
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"n","type":"t","score":0.5,"passed":false,"weight":1,"feedback":"f","details":[{"check":"c","passed":false}],"durationMs":3}`, string(data))
}

// Every type of the format is there, with what suites may write about it.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"text", "code", "file", "diff", "json_schema", "program", "behavior", "action_sequence", "skill_invocation",
		"tool_constraint", "tool_calls", "trigger", "prompt", "human", "human_calibration",
	}, Builtin.Names())
	for alias, name := range map[string]string{"regex": "text", "keyword": "text", "inline_script": "code", "file_exists": "file", "script": "program", "llm": "prompt"} {
		k, ok := Builtin.Lookup(alias)
		require.True(t, ok)
		require.Equal(t, name, k.Name)
	}
	_, ok := Builtin.Lookup("nothing")
	require.False(t, ok)
	for _, k := range Builtin.Kinds() {
		require.NotEmpty(t, k.Summary, k.Name)
		requireKeys(t, reflect.TypeOf(k.Options()).Elem())
	}
}

// requireKeys checks that every exported field of options has a key in YAML.
func requireKeys(t *testing.T, typ reflect.Type) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.IsExported() {
			require.NotEmpty(t, f.Tag.Get("yaml"), "%s.%s", typ, f.Name)
		}
	}
}

func TestUngradable(t *testing.T) {
	t.Parallel()
	known := NewRegistry(Kind{Kind: eval.Kind{Name: "known"}})
	b, err := known.Bind(&eval.Grader{Name: "g", Type: "known"}, NewEnv(&eval.Suite{}, 1))
	require.NoError(t, err)
	_, err = b.Grade(context.Background(), subject(""))
	require.ErrorContains(t, err, "cannot grade with type")
	require.True(t, executor.IsPermanent(err))
	_, err = Builtin.Bind(&eval.Grader{Name: "g", Type: "zzz"}, NewEnv(&eval.Suite{}, 1))
	require.ErrorContains(t, err, `unknown type "zzz" (known: text,`)
	_, err = Builtin.Bind(&eval.Grader{Name: "g", Type: "text"}, NewEnv(&eval.Suite{}, 1))
	require.ErrorContains(t, err, "options of type text are missing")
	runOptions(t, "prompt", []optionCase{
		{"nothing", "model: m", "checks-nothing: give prompt or rubric", nil},
		{"mode", "prompt: p\nmode: both", "invalid-value: independent, pairwise", nil},
	})
}
