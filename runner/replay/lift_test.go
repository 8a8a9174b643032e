package replay

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval/jsonwalk"
	"waza/runner/record"
)

// Lifting a line gives the same as decoding it.
func TestLiftEvent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 8, 0, 0, 123456789, time.UTC)
	odd := "a \"task\"\\ with\u2028 \x01 everything {[]},:"
	trial := &record.Trial{TaskID: odd, TrialNum: 3, Verdict: record.Failed, Output: "}]\"\\", Error: odd}
	for _, e := range []*record.Event{
		{
			Seq: 7, Time: at, Type: record.TrialComplete, TaskID: odd, TaskName: odd, TaskNum: 12, TotalTasks: 40,
			TrialNum: 3, Verdict: record.Failed, Trial: trial,
		},
		{
			Seq: 8, Time: at, Type: record.TaskComplete, TaskID: odd, TaskNum: 1, Verdict: record.Passed,
			Task: &record.Task{Verdict: record.Passed},
		},
		{Seq: 9, Time: at, Type: record.RunComplete, Status: record.StatusCompleted, Summary: &record.Summary{Flaky: 3}},
		{Seq: 10, Time: at, Type: record.End, Status: record.StatusFailed, Error: odd},
		{
			Seq: 11, Time: at, Type: record.TrialGraded, TaskID: odd, TaskNum: 1, TrialNum: 1, Was: record.Failed,
			Verdict: record.Passed, Trial: trial,
		},
		{Seq: 12, Time: at, Type: record.RunResumed, KeptTrials: 4, Kept: map[string][]record.TrialRange{odd: {{1, 3}, {7, 7}}}, Message: odd},
	} {
		line, trialAt, err := new(Encoder).Line(e, nil)
		require.NoError(t, err)
		lifted, place, err := new(Lifter).Lift(line)
		require.NoError(t, err)
		whole, wholePlace, err := decodeEvent(line)
		require.NoError(t, err)
		require.Equal(t, wholePlace, place)
		if e.Trial != nil {
			require.EqualValues(t, trialAt, place.Off)
			require.EqualValues(t, len(line)-trialAt-1, place.Size)
		}
		if e.Type == record.TrialComplete { // Lift ignores its other members
			whole.TaskName, whole.TotalTasks = "", 0
		}
		require.Empty(t, cmp.Diff(whole, lifted))
	}
	for _, line := range []string{
		"", "{", "{}", "[]", "null", `{"seq":1}`, `{"seq":"x","type":"end"}`, `{"seq":1,"type":"trial_complete"}`,
		`{"seq":1,"type":"trial_complete","trial":{`, `{"seq":1,"type":"trial_complete","trial":{}`, `{"seq"`, `{"seq":`,
		`{"seq":1 "type":"log"}`,
		`{"type":"trial_complete","taskId":"\x","trial":{}}`, `{"type":"end","time":1}`,
	} {
		_, _, err := new(Lifter).Lift([]byte(line))
		require.Error(t, err, line)
	}
}

// FuzzLift checks that no line causes a panic.
func FuzzLift(f *testing.F) {
	for _, s := range []string{`{}`, `{"seq":1,"type":"trial_complete","trial":{"a":"]}"}}`, `{"a":{"b":{}}}x`, `[1]`, `"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, data []byte) { _, _, _ = new(Lifter).Lift(data) })
}

// A lean trial is the trial without its texts. Its head is number and verdict, wherever they are
// in the JSON.
func TestLean(t *testing.T) {
	t.Parallel()
	score := 0.5
	grades := []record.Grade{{Name: "a", Type: "text", Score: 1, Passed: true, Details: map[string]any{"usage": "\u2028"}}}
	want := record.Trial{
		TaskID: "a \"b\"", TrialNum: 3, Hash: "h", Verdict: record.Failed, Score: &score, Error: "\n", DurationMS: 7, Graders: grades,
		Usage: &record.Usage{InputTokens: 4}, Spent: &record.Ledger{Agent: &record.Usage{InputTokens: 5}}, Cached: &record.CachedFrom{RunID: "r"},
		Attempts: []record.Attempt{{Verdict: record.Errored, Error: "x", Graders: grades}},
	}
	whole := want
	said := []record.Entry{{Type: record.EntryMessage, Text: "}]"}}
	whole.Prompt, whole.Output, whole.Transcript, whole.Workspace = "p", "{", said, &record.Snapshot{}
	whole.Attempts = []record.Attempt{{Verdict: record.Errored, Error: "x", Graders: grades, Output: "long", Transcript: said}}
	raw, err := jsonwalk.Encode(&whole)
	require.NoError(t, err)
	for _, raw := range []string{string(raw), `{"new":1,` + string(raw[1:])} {
		var lean LeanTrial
		require.NoError(t, lean.Lift([]byte(raw)))
		require.Equal(t, want, lean.Trial)
	}
	for _, raw := range []string{string(raw), `{"verdict":"failed","graders":[],"trialNum":3,"cached":7}`} {
		var head LeanTrial
		require.NoError(t, head.LiftHead([]byte(raw)))
		require.Equal(t, 3, head.TrialNum)
		require.Equal(t, record.Failed, head.Verdict)
	}
	require.Error(t, new(LeanTrial).LiftHead([]byte(`{"trialNum":"x"}`)))
}

// A trial that never started is lifted like it is decoded, and no other trial is.
func TestLiftNotStarted(t *testing.T) {
	t.Parallel()
	notStarted := func(num int, v record.Verdict, why string) *record.Trial {
		return &record.Trial{
			TaskID: "a \"b\"", TrialNum: num, Hash: "h", Verdict: v, Error: why, Graders: []record.Grade{},
			Transcript: []record.Entry{},
		}
	}
	for _, res := range []*record.Trial{
		notStarted(2, record.Skipped, "not started: the run was stopped"),
		notStarted(3, record.Cancelled, "not started: \"x\"\n"),
		{
			TaskID: "a", TrialNum: 1, Verdict: record.Errored, StartedAt: time.Unix(1, 0).UTC(),
			Graders: []record.Grade{}, Transcript: []record.Entry{},
		},
		{TaskID: "a", TrialNum: 1, Verdict: record.Passed, Output: "x", Graders: []record.Grade{}, Transcript: []record.Entry{}},
	} {
		raw, err := jsonwalk.Encode(res)
		require.NoError(t, err)
		var got record.Trial
		require.Equal(t, res.StartedAt.IsZero() && res.Output == "", liftNotStarted(&got, raw))
		require.NoError(t, new(Trials).DecodeRaw(raw, &got))
		require.Equal(t, res, &got)
	}
}

// Heads of events that are read without a decoder equal those that are decoded, and an event like
// the one before gets its texts.
func FuzzLiftHead(f *testing.F) {
	f.Add(`{"seq":3,"time":"2026-11-28T06:21:05.4037Z","type":"trial_complete","taskId":"a","taskName":"A","taskNum":1,"totalTasks":2,"trialNum":1,"totalTrials":2,"verdict":"passed","score":1,"durationMs":5,"trial":{"taskId":"a"}}`)
	f.Add(`{"seq":3,"time":"2026-11-28T06:21:05Z","type":"trial_start","taskId":"a\"","taskName":"\u00e9","error":"x"}`)
	f.Add(`{"seq":4,"time":"2026-11-28T06:21:05Z","type":"log","level":"info","message":"m"}`)
	f.Add(`{"seq":4,"type":"end","status":"completed"}`)
	f.Add(`{"type":"","taskNum":1e3,"score":null}`)
	f.Fuzz(func(t *testing.T, line string) {
		var want record.Event
		if !utf8.ValidString(line) || !json.Valid([]byte(line)) || json.Unmarshal([]byte(line), &want) != nil {
			return // the journal's checksum excludes it
		}
		want.Trial = nil
		for _, earlier := range []*record.Event{{}, {TaskID: "a", TaskName: "A"}} {
			got, err := liftHead([]byte(line), earlier)
			require.NoError(t, err)
			require.Equal(t, &want, got)
		}
	})
}
