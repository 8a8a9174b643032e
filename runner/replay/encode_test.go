package replay

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waza/eval/jsonwalk"
	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/record"
)

const testSecret = "sk-proj-Zx81kQpLmN4vT7wR2yB5"

// largeEvent returns the end of a trial that contains a secret in each of its parts.
func largeEvent() *record.Event {
	filler := strings.Repeat("The agent \"reads\" a <file>.\n", 4000)
	text := "key " + testSecret + "\n" + filler + base64.StdEncoding.EncodeToString([]byte("me:"+testSecret)) + "\n" + filler + testSecret[:12]
	transcript := func(text string) []record.Entry {
		return []record.Entry{
			{Type: record.EntryMessage, Role: "user", Text: "use " + testSecret},
			{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "sh", Result: json.RawMessage(`"` + testSecret + `"`)}},
			{Type: record.EntryMessage, Role: "assistant", Text: text},
		}
	}
	trial := &record.Trial{
		TaskID: "a", TrialNum: 1, Verdict: record.Passed, StartedAt: time.Now().UTC(), Graders: []record.Grade{{Name: "g", Feedback: testSecret}},
		Output: text, Transcript: transcript(text),
		Attempts: []record.Attempt{
			{Verdict: record.Failed, Output: filler, Transcript: transcript(filler)},
			{Verdict: record.Failed, Output: "short " + testSecret, Transcript: transcript(text[:len(text)-1])},
		},
	}
	return &record.Event{
		Seq: 1, Time: trial.StartedAt, Type: record.TrialComplete, TaskID: "a", TrialNum: 1,
		Verdict: record.Passed, Trial: trial,
	}
}

// Large texts are searched for secrets separately from their line. The result is the same as for
// the whole line, and the event of the caller keeps its texts.
func TestRecordLargeRedacts(t *testing.T) {
	t.Parallel()
	var redactor secrets.Redactor
	redactor.Add(testSecret)
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()

	ev, enc := largeEvent(), new(Encoder)
	line, at, err := enc.Line(ev, nil)
	require.NoError(t, err)
	want, _, _, err := enc.redact(&redactor, ev, line, at)
	require.NoError(t, err)

	got, line, at, size, err := new(Encoder).Record(ev, &redactor, w.Blobs())
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, largeEvent().Trial.Output, ev.Trial.Output)
	require.Equal(t, largeEvent().Trial.Attempts, ev.Trial.Attempts)
	require.Greater(t, size, len(got.Trial.Output))

	require.NotContains(t, string(line), testSecret)
	require.Less(t, len(line), storeAbove, "large parts are beside the line")
	files, err := OpenTrials(w.Run())
	require.NoError(t, err)
	defer files.Close()
	var read record.Trial
	require.NoError(t, files.DecodeRaw(line[at:len(line)-1], &read))
	require.Equal(t, want.Trial, &read)

	var outcome record.Trial
	more, err := files.decodeOutcome(line[at:len(line)-1], &outcome)
	require.NoError(t, err)
	require.Equal(t, len(want.Trial.Output), len(outcome.Output)+int(more))
	require.Less(t, len(outcome.Output), storeAbove)
	require.True(t, strings.HasPrefix(want.Trial.Output, outcome.Output))
	require.Equal(t, want.Trial.Graders, outcome.Graders)
	require.Nil(t, outcome.Transcript)
	require.Len(t, outcome.Attempts, 2)
	require.Empty(t, outcome.Attempts[1].Output)
}

// An answer is the output and an entry of the transcript, and was stored twice.
func TestAnswerIsStoredOnce(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"text": strings.Repeat("an <answer> & \u2028more\n", storeAbove), "not a text": strings.Repeat("a\xff\xfe<b>", storeAbove),
	} {
		for size, question := range map[string]string{"small": "why?", "large": strings.Repeat("why?", storeAbove)} {
			t.Run(name+" "+size, func(t *testing.T) {
				t.Parallel()
				w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
				require.NoError(t, err)
				defer func() { require.NoError(t, w.Close()) }()
				talk := []record.Entry{
					{Type: record.EntryMessage, Role: "user", Text: question}, {Type: record.EntryMessage, Role: "assistant", Text: answer},
					{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "x", Arguments: json.RawMessage(`{"a":"<b>"}`)}},
					{Type: record.EntryThought, Text: answer},
				}
				trial := &record.Trial{
					TaskID: "a", TrialNum: 1, StartedAt: time.Now().UTC(), Output: answer, Transcript: talk,
					Attempts: []record.Attempt{{Output: answer, Transcript: talk}},
				}
				stored := store(trial, w.Blobs())
				require.Equal(t, answer, trial.Transcript[1].Text)
				require.Equal(t, []int{1, 3}, stored.Blobs.Said)
				require.Equal(t, size == "small", stored.Blobs.Transcript == nil)
				require.Equal(t, stored.Blobs.Output, stored.Blobs.Attempts[0].Output)
				lean, err := stored.appendJSON(nil)
				require.NoError(t, err)
				require.Less(t, len(lean), 5_000)
				files, err := OpenTrials(w.Run())
				require.NoError(t, err)
				defer files.Close()
				want, err := trial.AppendJSON(nil)
				require.NoError(t, err)
				whole, err := files.whole(lean)
				require.NoError(t, err)
				require.Equal(t, string(want), string(whole))
				var read, plain record.Trial
				require.NoError(t, json.Unmarshal(want, &plain))
				require.NoError(t, files.DecodeRaw(lean, &read))
				require.Equal(t, plain, read)
			})
		}
	}
}

// The start of a stored output ends with a whole character, also of an output that is not a text.
func TestOutcomeHead(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	for _, output := range []string{
		strings.Repeat("a", storeAbove+1), strings.Repeat("é", storeAbove), "a" + strings.Repeat("é", storeAbove), strings.Repeat("日本", storeAbove),
		strings.Repeat("a\xff\xfe<b>", storeAbove),
	} {
		trial := &record.Trial{TaskID: "a", TrialNum: 1, StartedAt: time.Now().UTC(), Output: output}
		lean, err := store(trial, w.Blobs()).appendJSON(nil)
		require.NoError(t, err)
		files, err := OpenTrials(w.Run())
		require.NoError(t, err)
		var whole, head record.Trial
		require.NoError(t, files.DecodeRaw(lean, &whole))
		more, err := files.decodeOutcome(lean, &head)
		require.NoError(t, err)
		require.NoError(t, files.Close())
		require.True(t, strings.HasPrefix(whole.Output, head.Output))
		require.InDelta(t, len(output)-headBytes, more, utf8.UTFMax)
		if utf8.ValidString(output) {
			require.Equal(t, len(whole.Output), len(head.Output)+int(more))
		}
	}
}

// A trial is decoded to what its whole JSON contains, also when its output is not a text.
func TestDecodeStoredInvalidText(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	trial := &record.Trial{TaskID: "a", TrialNum: 1, StartedAt: time.Now().UTC(), Output: strings.Repeat("a\xff\xfe\u2028<b>", storeAbove)}
	lean, err := jsonwalk.Encode(store(trial, w.Blobs()))
	require.NoError(t, err)
	files, err := OpenTrials(w.Run())
	require.NoError(t, err)
	defer files.Close()
	whole, err := files.whole(lean)
	require.NoError(t, err)
	var want, got record.Trial
	require.NoError(t, json.Unmarshal(whole, &want))
	require.NoError(t, files.DecodeRaw(lean, &got))
	require.Equal(t, want.Output, got.Output)
}
