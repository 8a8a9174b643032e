package behavior

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/internal/given"
	"waza/runner/record"
)

func share(x float64) *float64 { return &x }

// The tests contain the examples in the comment of Scores and others computed by hand.
func TestToolScores(t *testing.T) {
	t.Parallel()
	const weather = "{tool: get_weather, arguments: {city: Paris, unit: C, days: 3, hourly: true, lang: fr}}"
	for _, c := range []struct {
		name, required string
		calls          []string
		selection      float64
		params         *float64
		overall        float64
		call           int // -1 for none
		passes         bool
		feedback       string
	}{
		{
			"the example", "[" + weather + "]",
			[]string{`get_weather {"city":"Paris","unit":"C","days":3,"hourly":true,"lang":"en"}`}, 1, share(0.8),
			0.9, 0, false, `argument lang is "en", not "fr"`,
		},
		{
			"two are expected", "[" + weather + ", {tool: send_mail}]",
			[]string{`get_weather {"city":"Paris","unit":"C","days":3,"hourly":true,"lang":"en"}`}, 0.5, share(0.8),
			0.65, 0, false, "no call of send_mail",
		},
		{
			"all right", "[{tool: a, arguments: {n: 5, list: [1, x], map: {y: null}}}]",
			[]string{"b", `a {"map":{"y":null},"list":[1.0,"x"],"n":5.0,"more":1}`}, 1, share(1), 1, 1, true, "",
		},
		{"not made", "[{tool: a, arguments: {n: 5}}]", []string{"b", "A"}, 0, share(0), 0, -1, false, "no call of a with n; called: b, A"},
		{"nothing was called", "[{tool: a, arguments: {n: 5}}]", nil, 0, share(0), 0, -1, false, "called: (none)"},
		{"no arguments are listed", "[{tool: a}, {tool: b}, {pattern: ^c}]", []string{"a", "cc"}, 2. / 3, nil, 2. / 3, 0, false, "no call of b"},
		{
			"a text is not a number", "[{tool: a, arguments: {n: '5'}}]", []string{`a {"n":5}`}, 1, share(0), 0.5, 0,
			false, `argument n is 5, not "5"`,
		},
		{
			"a missing argument", "[{tool: a, arguments: {n: 5, m: null}}]", []string{`a {"m":null}`}, 1, share(0.5),
			0.75, 0, false, "has no argument n",
		},
		{
			"large numbers are exact", "[{tool: a, arguments: {id: 9007199254740993}}]",
			[]string{`a {"id":9007199254740992}`, `a {"id":9007199254740993}`}, 1, share(1), 1, 1, true, "",
		},
		{
			"the best call counts", "[{tool: a, arguments: {n: 1, m: 2}}]",
			[]string{`a {"n":1}`, `a {"n":1,"m":2}`, "a"}, 1, share(1), 1, 1, true, "",
		},
		{
			"a call meets one of them", "[{tool: a, arguments: {n: 1}}, {tool: a, arguments: {n: 1}}]",
			[]string{`a {"n":1}`}, 0.5, share(0.5), 0.5, 0, false, "no call of a",
		},
		{
			"most calls are matched", "[{tool: a, arguments: {n: 1}}, {tool: a, arguments: {n: 1, m: 2}}]",
			[]string{`a {"n":1,"m":2}`, `a {"n":1,"m":3}`}, 1, share(1), 1, 1, true, "",
		},
		{
			"made calls before right arguments", "[{pattern: a|b}, {tool: a, arguments: {n: 1}}]",
			[]string{`a {"n":1}`, "b"}, 1, share(1), 1, 0, true, "",
		},
		{"a pattern can share calls", "[{pattern: a}, {tool: a, arguments: {n: 1}}]", []string{`a {"n":1}`}, 0.5, share(1), 0.75, 0, true, ""},
		{
			"count", "[{tool: a, count: 4, arguments: {n: 1}}]", []string{`a {"n":1}`, `a {"n":1}`, `a {"n":2}`},
			0.75, share(0.5), 0.625, 0, false, "3 calls of a with n, fewer than 4",
		},
		{
			"count and wrong arguments", "[{tool: a, count: 2, arguments: {n: 1}}]",
			[]string{`a {"n":1}`, `a {"n":2}`}, 1, share(0.5), 0.75, 0, false, "argument n is 2, not 1",
		},
		{
			"a pattern on arguments", "[{tool: a, args_pattern: rain, arguments: {n: 1}}]",
			[]string{`a {"n":1}`, `a {"n":2,"x":"RAIN"}`}, 1, share(0), 0.5, 1, false, "argument n is 2, not 1",
		},
		{"into maps", "[{tool: a, arguments: {o.p: 1}}]", []string{`a {"o":{"p":1}}`}, 1, share(1), 1, 0, true, ""},
		{"arguments in a text", "[{tool: a, arguments: {n: 1}}]", []string{`a "{\"n\":1}"`}, 1, share(1), 1, 0, true, ""},
		{"not JSON", "[{tool: a, arguments: {n: 1}}]", []string{`a [1]`}, 1, share(0), 0.5, 0, false, "has no argument n"},
		{
			"variables", "[{tool: '{{tool}}', arguments: {city: '{{city}}', list: ['{{city}}']}}]",
			[]string{`get {"city":"Oslo","list":["Oslo"]}`}, 1, share(1), 1, 0, true, "",
		},
		{"forbidden", "[{tool: a}]\nforbidden: [{tool: a, arguments: {n: 1}}, {tool: A}]", []string{`a {"n":2}`}, 1, nil, 1, 0, true, ""},
		{
			"forbidden and made", "[{tool: a}]\nforbidden: [{tool: a, arguments: {n: 1}}]", []string{`a {"n":1}`}, 1,
			nil, 1, 0, false, "which is forbidden",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, _ := gradertest.Bind(t, "tool_calls", "required: "+c.required, nil)
			s := gradertest.Subject("", gradertest.Calling(c.calls...), func(s *grader.Subject) {
				s.Expand = func(text string) string {
					return map[string]string{"{{tool}}": "get", "{{city}}": "Oslo"}[text] +
						map[bool]string{true: text}[text != "{{tool}}" && text != "{{city}}"]
				}
			})
			g, err := b.Grade(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, c.passes, g.Passed, g.Feedback)
			require.Contains(t, g.Feedback, c.feedback)
			require.InDelta(t, c.selection, g.Tools.Selection, 1e-12)
			require.InDelta(t, c.overall, g.Tools.Overall, 1e-12)
			if c.params == nil {
				require.Nil(t, g.Tools.Params)
			} else {
				require.InDelta(t, *c.params, *g.Tools.Params, 1e-12)
			}
			if c.call < 0 {
				require.Nil(t, g.Tools.Call)
			} else {
				require.Equal(t, c.call, *g.Tools.Call)
			}
			none := b.WithoutCalls()
			require.Zero(t, none.Selection+none.Overall)
			require.Equal(t, c.params == nil, none.Params == nil)
		})
	}
	b, _ := gradertest.Bind(t, "tool_calls", "max_calls: 1", nil)
	g, err := b.Grade(t.Context(), gradertest.Subject("", gradertest.Calling("a")))
	require.NoError(t, err)
	require.Nil(t, g.Tools, "no call is expected")
	require.Nil(t, b.WithoutCalls())
	gradertest.RunOptions(t, "tool_calls", []gradertest.OptionCase{
		{"most", "required: [{tool: a, count: 150}, {pattern: b, count: 50}]", "", nil},
		{"too many", "required: [{tool: a, count: 150}, {tool: b, count: 51}]", "too-large: required lists more than 200 calls", nil},
		{"far too many", "required: [{tool: a, count: 9223372036854775807}]", "too-large: required lists more than 200 calls", nil},
		{"nothing", "required: [{count: 1}]", "missing-field: required[0]: tool or pattern is missing", nil},
	})
}

// The dropped part of the transcript may contain the expected call.
func TestNoToolScoresOfACutTranscript(t *testing.T) {
	t.Parallel()
	b, _ := gradertest.Bind(t, "tool_calls", "required: [{tool: a}]\nmax_calls: 1", nil)
	cut := func(s *grader.Subject) {
		s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryDropped, Text: "3 entries"})
	}
	_, err := b.Grade(t.Context(), gradertest.Subject("", cut))
	require.ErrorContains(t, err, "cannot be decided")
	g, err := b.Grade(t.Context(), gradertest.Subject("", gradertest.Calling("b", "b"), cut))
	require.NoError(t, err)
	require.False(t, g.Passed)
	require.Nil(t, g.Tools)
}

// assign finds the assignment with the largest weight.
func TestAssignIsBest(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		entries, columns := 1+rng.IntN(4), rng.IntN(6)
		var rows []int
		weights := make([][]float64, entries)
		for i := range weights {
			for range 1 + rng.IntN(2) {
				rows = append(rows, i)
			}
			weights[i] = make([]float64, columns)
			for j := range weights[i] {
				weights[i][j] = float64(rng.IntN(4))
			}
		}
		got, used := 0.0, map[int]bool{}
		for row, column := range assign(rows, weights, columns) {
			require.False(t, used[column])
			used[column] = true
			if column < columns {
				got += weights[rows[row]][column]
			}
		}
		require.InDelta(t, best(rows, weights, make([]bool, columns)), got, 1e-9)
	}
}

// best tries all assignments.
func best(rows []int, weights [][]float64, used []bool) float64 {
	if len(rows) == 0 {
		return 0
	}
	most := best(rows[1:], weights, used)
	for j := range used {
		if !used[j] {
			used[j] = true
			most = math.Max(most, weights[rows[0]][j]+best(rows[1:], weights, used))
			used[j] = false
		}
	}
	return most
}

// SameJSON compares values like JSON, whatever the form of numbers and the order of members.
func TestSameValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    any
		b    string
		same bool
	}{
		{5, "5.0", true}, {5.5, "55e-1", true}, {1e3, "1000", true}, {uint64(math.MaxUint64), "18446744073709551615", true},
		{0, "-0", true}, {0.1, "0.2", false}, {true, "true", true}, {true, "1", false}, {"a", `"a"`, true}, {"a", `"A"`, false},
		{nil, "null", true}, {nil, "0", false}, {[]any{1, 2}, "[1,2]", true}, {[]any{1, 2}, "[2,1]", false}, {[]any{}, "{}", false},
		{map[string]any{"a": 1, "b": nil}, `{"b":null,"a":1}`, true}, {map[string]any{"a": 1}, `{"a":1,"b":2}`, false},
		{map[string]any{"b": nil}, `{"a":null}`, false},
		{"<é>", `"<\u00e9>"`, true},
	} {
		b, ok := exactJSON(c.b)
		require.True(t, ok)
		require.Equal(t, c.same, given.SameJSON(exactValue(c.a), b), "%v %s", c.a, c.b)
		require.Equal(t, c.same, given.SameJSON(b, exactValue(c.a)), "%v %s", c.a, c.b)
	}
}

// A value equals itself, even after it is encoded and decoded again.
func FuzzSameValue(f *testing.F) {
	f.Add(`{"a":[1,1.0,1e400,"x",null,true]}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := exactJSON(text)
		if !ok {
			return
		}
		again, err := json.Marshal(v)
		require.NoError(t, err)
		w, ok := exactJSON(string(again))
		require.True(t, ok)
		require.True(t, given.SameJSON(v, w))
	})
}
