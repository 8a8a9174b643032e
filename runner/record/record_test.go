package record_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/eval"
	"waza/runner/record"
)

var verdicts = []record.Verdict{
	record.Passed, record.Failed, record.Errored, record.TimedOut, record.Cancelled, record.Skipped, record.NeedsReview,
}

// Each verdict counts once, wherever it is counted, and Remove undoes Add.
func TestCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.SampledFrom(verdicts)).Draw(t, "verdicts")
		cut := rapid.IntRange(0, len(list)).Draw(t, "cut")
		counted := 0
		count := func(list []record.Verdict) (c record.Counts) {
			c.Total = len(list)
			for _, v := range list {
				c.Add(v)
			}
			return c
		}
		for _, v := range list {
			if v.Counted() {
				counted++
			}
		}
		all, sum := count(list), count(list[:cut])
		sum.Merge(count(list[cut:]))
		if all != sum || all.Done() != len(list) || all.Counted() != counted {
			t.Fatalf("%+v, %+v: %d of %d are counted", all, sum, counted, len(list))
		}
		for _, v := range list {
			all.Remove(v)
		}
		if all != (record.Counts{Total: len(list)}) {
			t.Fatalf("%+v is left", all)
		}
	})
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	half := 0.5
	for _, c := range []struct {
		verdict                              record.Verdict
		counted, cacheable, keepable, graded bool
		score                                *float64
	}{
		{record.Passed, true, true, true, true, &half},
		{record.Failed, true, true, true, true, &half},
		{record.TimedOut, true, false, true, false, new(float64)},
		{record.NeedsReview, false, true, true, true, nil},
		{record.Errored, false, false, false, false, nil},
		{record.Cancelled, false, false, false, false, nil},
		{record.Skipped, false, false, false, false, nil},
	} {
		require.True(t, c.verdict.Known(), c.verdict)
		got := []bool{c.verdict.Counted(), c.verdict.Cacheable(), c.verdict.Keepable(), c.verdict.Graded()}
		require.Equal(t, []bool{c.counted, c.cacheable, c.keepable, c.graded}, got, c.verdict)
		trial := &record.Trial{Verdict: c.verdict, Score: &half}
		require.Equal(t, c.score, trial.CountedScore(), c.verdict)
		require.Equal(t, c.cacheable, trial.Reusable(), c.verdict)
		trial.Graders = []record.Grade{{ChangedFiles: []string{"a", "b"}}, {ChangedFiles: []string{"a"}}}
		require.Equal(t, []string{"a", "b"}, trial.ChangedFiles())
		require.False(t, trial.Reusable(), "a file of a grader changed")
		trial.Graders = []record.Grade{{Unchecked: "why"}}
		require.False(t, trial.Reusable(), "a grader could not be checked")
	}
	require.False(t, record.Verdict("great").Known())
	require.False(t, record.Verdict("").Known())
}

// Sums of usages saturate, keep separately counted totals, and are the same in any order.
func TestUsage(t *testing.T) {
	t.Parallel()
	plain, total := record.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: 0.5}, record.Usage{InputTokens: 1, TotalTokens: 100}
	require.EqualValues(t, 15, plain.Total())
	require.EqualValues(t, 100, total.Total())
	require.Equal(t, record.Usage{InputTokens: 11, OutputTokens: 5, TotalTokens: 115, CostUSD: 0.5}, plain.Add(total))
	require.Equal(t, plain.Add(total), total.Add(plain))
	huge := record.Usage{InputTokens: math.MaxInt64, OutputTokens: 1, CostUSD: math.MaxFloat64}
	require.Equal(t, record.Usage{InputTokens: math.MaxInt64, OutputTokens: 2, CostUSD: math.MaxFloat64}, huge.Add(huge))
	require.EqualValues(t, math.MaxInt64, huge.Total())
	near := record.Usage{InputTokens: math.MaxInt64 - 1}
	require.EqualValues(t, math.MaxInt64, near.Add(record.Usage{InputTokens: 2}).InputTokens)

	require.Nil(t, record.AddUsage(nil, nil))
	sum := record.AddUsage(&plain, &plain)
	require.EqualValues(t, 30, sum.Total())
	require.EqualValues(t, 15, plain.Total(), "the parts are unchanged")
}

// fromJSON decodes a trial like a reader of a record does.
func fromJSON(t *testing.T, text string) *record.Trial {
	t.Helper()
	res := new(record.Trial)
	require.NoError(t, json.Unmarshal([]byte(text), res))
	return res
}

// The cost of a trial is split between its own run and the run that it was reused from. Older
// records have it only in their parts.
func TestTrialLedger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, trial               string
		all, before, here, judges int64 // tokens; -1 means unknown
	}{
		{"nothing", `{}`, -1, -1, -1, -1},
		{"own", `{"spent":{"agent":{"inputTokens":5},"judges":{"outputTokens":2}}}`, 7, -1, 7, 2},
		{
			"older",
			`{"usage":{"inputTokens":5},"attempts":[{"usage":{"outputTokens":3}}],` +
				`"graders":[{"details":{"usage":{"inputTokens":4}}},{"details":"x"}]}`,
			12, -1, 12, 4,
		},
		{"absurd", `{"graders":[{"details":{"usage":{"inputTokens":-4,"outputTokens":2}}}]}`, 2, -1, 2, 2},
		{"reused", `{"spent":{"agent":{"inputTokens":5}},"cached":{"runId":"r","spent":{"agent":{"inputTokens":5}}}}`, 5, 5, -1, -1},
		{
			"reused and judged",
			`{"spent":{"agent":{"inputTokens":5},"judges":{"inputTokens":9}},"cached":{"spent":{"agent":{"inputTokens":5},` +
				`"judges":{"inputTokens":2}}}}`,
			14, 7, 7, 7,
		},
		{"reused without cost", `{"spent":{"judges":{"inputTokens":9}},"cached":{}}`, 9, -1, 9, 9},
		{"older reused", `{"usage":{"inputTokens":5},"cached":{}}`, 5, 5, -1, -1},
	} {
		res := fromJSON(t, c.trial)
		tokens := func(l *record.Ledger) int64 {
			if u := l.Total(); u != nil {
				return u.Total()
			}
			return -1
		}
		judges := int64(-1)
		if here := res.SpentHere(); here != nil && here.Judges != nil {
			judges = here.Judges.Total()
		}
		got := []int64{tokens(res.Ledger()), tokens(res.SpentBefore()), tokens(res.SpentHere()), judges}
		require.Equal(t, []int64{c.all, c.before, c.here, c.judges}, got, c.name)
	}
}

// The weight of an event grows with each part that an agent or a grader fills.
func TestEventWeight(t *testing.T) {
	t.Parallel()
	const size = 10_000
	long := strings.Repeat("x", size)
	base := (&record.Event{Trial: &record.Trial{}}).Weight()
	for name, e := range map[string]*record.Event{
		"message":    {Message: long, Trial: &record.Trial{}},
		"error":      {Error: long, Trial: &record.Trial{}},
		"output":     {Trial: &record.Trial{Output: long}},
		"feedback":   {Trial: &record.Trial{Graders: []record.Grade{{Feedback: long}}}},
		"transcript": {Trial: &record.Trial{Transcript: []record.Entry{{Text: long}}}},
		"tool":       {Trial: &record.Trial{Transcript: []record.Entry{{Tool: &record.ToolCall{Result: json.RawMessage(long)}}}}},
		"plan":       {Trial: &record.Trial{Transcript: []record.Entry{{Plan: []record.PlanStep{{Text: long}}}}}},
		"permission": {Trial: &record.Trial{Transcript: []record.Entry{{Permission: &record.Permission{Reason: long}}}}},
		"attempt":    {Trial: &record.Trial{Attempts: []record.Attempt{{Transcript: []record.Entry{{Text: long}}}}}},
	} {
		require.GreaterOrEqual(t, e.Weight(), base+size, name)
		require.Less(t, e.Weight(), base+2*size, name)
	}
}

// Damage is described with its place. Doubts alone are no damage.
func TestDamage(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]*record.Damage{
		"the journal is damaged at line 3 (byte 90, 12 bytes): checksum mismatch; events lost: 1": {
			Events: 1, Parts: 1, Bytes: 12, Line: 3, Offset: 90, Error: "checksum mismatch",
		},
		"the journal is damaged at 2 places, first at line 3 (byte 90): x; no events lost": {
			Parts: 2, Bytes: 12, Line: 3, Offset: 90, Error: "x",
		},
		"the end of the journal is missing; events lost: 2": {Events: 2, Ends: true},
		"lines of the journal are missing; events lost: 2":  {Events: 2},
		"run.json is damaged: missing file; its content was read from the journal": {
			Files: []record.DamagedFile{{File: "run.json", Error: "missing file", Restored: true}},
		},
		"result.json is damaged: x; its content is lost": {
			Files: []record.DamagedFile{{File: "result.json", Error: "x"}},
		},
	} {
		require.Equal(t, want, d.String())
		require.True(t, d.Damaged())
		require.Equal(t, d, d.OrNil())
	}
	doubt := &record.Damage{Unverifiable: "no key"}
	require.False(t, doubt.Damaged())
	require.Equal(t, doubt, doubt.OrNil())
	require.Equal(t, "the record cannot be verified: no key", doubt.String())
	require.Nil(t, new(record.Damage).OrNil())
	require.Nil(t, (*record.Damage)(nil).OrNil())
}

// Cells that differ only in their system prompt have the same rest, in any order of parameters
// and with any values: a text once read like further parameters.
func TestCells(t *testing.T) {
	t.Parallel()
	cell := func(model string, params map[string]any) *record.Cell {
		return &record.Cell{Name: model, Model: model, Params: params}
	}
	a := cell("m", map[string]any{eval.ParamSystemPrompt: "be brief", "temperature": 1, "top_p": 2})
	b := cell("m", map[string]any{"top_p": 2, "temperature": 1})
	require.Equal(t, a.WithoutPrompt(), b.WithoutPrompt())
	require.Contains(t, a.Params, eval.ParamSystemPrompt)
	require.NotEqual(t, a.WithoutPrompt(), cell("m", map[string]any{"temperature": "1 top_p:2"}).WithoutPrompt())
	require.NotEqual(t, a.WithoutPrompt(), cell("n", b.Params).WithoutPrompt())

	run := &record.Run{Tasks: []record.TaskRef{{Cell: a}, {Cell: cell("n", nil)}, {Cell: a}}}
	require.True(t, run.Matrix())
	require.Len(t, run.Cells(), 2)
	require.Nil(t, (&record.Run{Tasks: []record.TaskRef{{}}}).Cells())
	require.True(t, a.In(nil))
	require.False(t, (*record.Cell)(nil).In(a))
	require.True(t, (*record.Cell)(nil).In(nil))
	require.True(t, b.In(a), "cells are the same by name")

	for _, n := range []any{4000, int64(4000), 4000.0} { // as planned, and as read from JSON
		got := (&record.BenchmarkRef{Tiers: []int{1}}).ContextOf(cell("m", map[string]any{record.ParamContext: n}))
		require.Equal(t, 4000, got)
	}
}

func TestRouting(t *testing.T) {
	t.Parallel()
	routing := &record.Routing{Took: []string{"Billing"}, Rejected: []string{"Sales"}, Expected: []string{"old"}}
	expecting := func(names ...string) *eval.Task { return &eval.Task{Expected: &eval.Expected{Recipients: names}} }
	for _, c := range []struct {
		task   *eval.Task
		want   []string
		missed bool
	}{
		{&eval.Task{}, nil, false},
		{expecting("BILLING", "billing"), []string{"Billing"}, false},
		{expecting("sales"), []string{"Sales"}, true},
		{expecting("other", "billing"), []string{"Billing", "other"}, true},
	} {
		got := routing.For(c.task)
		require.Equal(t, c.want, got.Expected)
		require.Equal(t, c.missed, got.Missed())
		require.Equal(t, []string{"old"}, routing.Expected)
	}
	nobody := (&record.Routing{Took: []string{}}).For(&eval.Task{Expected: &eval.Expected{Recipients: []string{}}})
	require.NotNil(t, nobody.Expected)
	require.False(t, nobody.Missed())
	require.Nil(t, (*record.Routing)(nil).For(&eval.Task{}))
}

func TestNeedsAndReviews(t *testing.T) {
	t.Parallel()
	key, agent := record.Need{Kind: record.NeedKey, Name: "K"}, record.Need{Kind: record.NeedAgent, Name: "copilot"}
	require.Equal(t, []record.Need{agent, key}, record.JoinNeeds([]record.Need{key, agent}, nil, []record.Need{key}))
	require.Nil(t, record.JoinNeeds(nil, []record.Need{}))
	require.Equal(t, "the variable K", key.String())

	review := record.Review{Threshold: 0.7}
	own := &record.Grade{Type: record.TypeHuman, Details: review}
	b, err := json.Marshal(own)
	require.NoError(t, err)
	var read record.Grade
	require.NoError(t, json.Unmarshal(b, &read))
	require.Equal(t, own.Review(), read.Review())
	require.Equal(t, record.Review{Threshold: record.DefaultPass}, (&record.Grade{Type: record.TypeHuman, Details: "edited"}).Review())
	require.Zero(t, (&record.Grade{Type: "text", Details: map[string]any{"threshold": 1}}).Review())

	for orders, place := range map[string]string{
		"with,without": "first", "without,with": "second", "with,with": "", "tie,without": "", "with": "",
	} {
		require.Equal(t, place, (&record.Opinion{Orders: strings.Split(orders, ",")}).Place(), orders)
	}
	require.True(t, record.Finished([]record.Grade{{AfterTurn: 1}, {}}))
	require.False(t, record.Finished([]record.Grade{{AfterTurn: 1}}))
}

// A metric passes at its threshold, also where rounding puts it a little below.
func TestSummaryJudge(t *testing.T) {
	t.Parallel()
	var s record.Summary
	value := func(x float64) *float64 { return &x }
	metric := func(name string, v *float64) record.MetricResult {
		return record.MetricResult{MetricRef: record.MetricRef{Name: name, Threshold: 0.3}, Value: v}
	}
	s.Judge(metric("rounded", value(0.1+0.2-1e-12)))
	s.Judge(metric("below", value(0.29)))
	s.Judge(metric("unknown", nil))
	require.Equal(t, []string{"below"}, s.Missed)
	require.Equal(t, []string{"unknown"}, s.Unmeasured())
	require.True(t, *s.Metrics[0].Passed)
	require.Nil(t, s.Metrics[2].Passed)

	require.False(t, (*record.Task)(nil).Finished())
	task := &record.Task{}
	require.True(t, task.Finished())
	task.Trials.Skipped = 1
	require.False(t, task.Finished())
	task.Trials.Skipped, task.Trials.Errors = 0, 1
	require.False(t, task.Finished())
}
