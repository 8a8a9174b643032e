package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"waza/eval/discover"
	"waza/runner"
	"waza/runner/record"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestFaultOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int64
	}{
		{context.Canceled, -32800},
		{&unknownMethodError{"x", ""}, -32601},
		{&ParamError{Message: "no"}, -32602},
		{&SuiteError{Err: &discover.NotFoundError{Path: "x"}}, -32000},
		{&SuiteError{Err: &discover.AmbiguousError{Dir: "x"}}, -32000},
		{&SuiteError{Err: &discover.AmbiguousError{Dir: "x", Suites: []string{"a", "b"}}}, -32602},
		{&SuiteError{Err: errors.New("permission denied")}, -32000},
		{&InvalidSuiteError{}, -32001},
		{&TaskNotFoundError{}, -32004},
		{&record.SelectionError{What: "task"}, -32004},
		{&record.SelectionError{What: "tag"}, -32602},
		{&record.UnknownExecutorError{}, -32602},
		{&record.LimitError{}, -32005},
		{record.ErrRunNotFound, -32003},
		{runner.ErrClosed, -32007},
		{&RunFailedError{Err: errors.New("disk full")}, -32002},
		{&RunFailedError{Err: runner.ErrClosed}, -32007},
		{ErrUnauthorised, -32006},
		{errors.New("x"), -32603},
	} {
		fault := FaultOf(fmt.Errorf("wrapped: %w", c.err))
		require.Equal(t, c.code, fault.Code, "%T", c.err)
		require.NotEmpty(t, fault.Message)
	}
}

// Every code is documented, and its message matches the table.
func TestCodes(t *testing.T) {
	t.Parallel()
	seen := map[int64]bool{}
	for _, c := range Codes {
		require.False(t, seen[c.Code])
		seen[c.Code] = true
		require.NotEmpty(t, c.Doc)
		require.Equal(t, c.Message, NewFault(c.Code, "", nil).Message)
	}
	require.Len(t, Codes, 15)
}

// nested has parameters of its own.
type nested struct {
	Name  string   `json:"name" jsonschema:"required"`
	Share *float64 `json:"share" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1"`
	Most  *int     `json:"most" jsonschema:"minimum=0"`
}

func (*nested) NestsParameters() {}

func TestDecodeParams(t *testing.T) {
	t.Parallel()
	type params struct {
		In   *nested `json:"in_side"`
		Free *struct {
			X int `json:"x"`
		} `json:"free"`
		RunID      string   `json:"runId" jsonschema:"required"`
		ContextDir string   `json:"context_dir" alias:"context"`
		Trials     int      `json:"trials" jsonschema:"minimum=1,maximum=9"`
		Seconds    *float64 `json:"seconds" jsonschema:"minimum=0.5"`
		Tags       []string `json:"tags"`
		On         bool     `json:"on"`
		Any        any      `json:"any"`
	}
	half, two := 0.5, 2
	for _, c := range []struct {
		in   string
		want params
		err  string
	}{
		{in: `{"runId":"x"}`, want: params{RunID: "x"}},
		{in: `{"run_id":"x","contextDir":"y","trials":9.0,"seconds":0.5,"tags":["a"],"on":true,"any":[1]}`,
			want: params{RunID: "x", ContextDir: "y", Trials: 9, Seconds: &half, Tags: []string{"a"}, On: true, Any: []any{1.0}}},
		{in: `{"runId":"x","context":"y","trials":null,"tags":null}`, want: params{RunID: "x", ContextDir: "y"}},
		{in: `{"runId":"x","inSide":{"name":"n","share":0.5,"most":2.0}}`, want: params{RunID: "x", In: &nested{"n", &half, &two}}},
		{in: `{"runId":"x","in_side":null}`, want: params{RunID: "x"}},
		{in: `{"runId":"x","in_side":{}}`, err: `parameter "in_side.name" is missing`},
		{in: `{"runId":"x","in_side":{"name":"n","shares":1}}`, err: `unknown parameter "in_side.shares" (did you mean "in_side.share"?)`},
		{in: `{"runId":"x","in_side":{"name":"n","share":0}}`, err: `"in_side.share" must be more than 0, got 0`},
		{in: `{"runId":"x","in_side":{"name":"n","share":1.0}}`, err: `"in_side.share" must be less than 1, got 1.0`},
		{in: `{"runId":"x","in_side":[]}`, err: `"in_side" must be an object, not this list`},
		{in: `{"runId":"x","free":{"x":"y"}}`, err: `"free" must be an object, not one with a member of a wrong type`},
		{in: ``, err: `"runId" is missing`},
		{in: `[]`, err: `"runId" is missing`},
		{in: `{"runid":"x"}`, err: `unknown parameter "runid" (did you mean "runId"?)`},
		{in: `{"RunId":"x"}`, err: `did you mean "runId"`},
		{in: `{"runId":["x"]}`, err: `must be a string, not this list`},
		{in: `{"runId":"x","run_id":"x"}`, err: `mean the same`},
		{in: `{"runId":"x","runId":"x"}`, err: `given twice`},
		{in: `{"runId":"x","trials":10}`, err: `"trials" must be at most 9`},
		{in: `{"runId":"x","trials":1e300}`, err: `must be a whole number`},
		{in: `{"runId":"x","trials":true}`, err: `must be a whole number, not true`},
		{in: `{"runId":"x","seconds":0.1}`, err: `"seconds" must be at least 0.5`},
		{in: `{"runId":"x","seconds":{}}`, err: `must be a number, not an object`},
		{in: `{"runId":"x","tags":[1]}`, err: `must be a list of strings`},
		{in: `{"runId":"x","on":"true"}`, err: `must be true or false, not a string`},
		{in: `["x"]`, err: `by name`},
	} {
		var got params
		err := decodeParams(json.RawMessage(c.in), &got)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.in)
			continue
		}
		require.NoError(t, err, c.in)
		require.Empty(t, cmp.Diff(c.want, got), c.in)
	}
}
