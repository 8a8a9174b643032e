package replay

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/jsonwalk"
	"waza/runner/journal"
	"waza/runner/record"
)

// FuzzWhole restores every trial to its form before it was stored, whatever it contains. Invalid
// references produce an error or a message.
func FuzzWhole(f *testing.F) {
	f.Add("output", "text", 1, []byte(`{"blobs":{"output":{"hash":"x","size":5,"at":-1,"length":9}},"output":""}`))
	f.Add("\x00\xff<&>\u2028", `{"blobs":{}}`, 40_000,
		[]byte(`{"blobs":{"attempts":[null,{"transcript":{}}]},"attempts":[{},{"transcript":null}]}`))
	f.Add("", "", 0, []byte(`{"blobs":null,"a":1}`))
	w, err := journal.NewStore(f.TempDir()).Create("r", []byte("{}"))
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, w.Close()) })
	files, err := OpenTrials(w.Run())
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, files.Close()) })
	f.Fuzz(func(t *testing.T, output, text string, times int, raw []byte) {
		times = min(max(times, 0), 100_000/max(1, len(output)+len(text)))
		entry := record.Entry{Type: record.EntryMessage, Text: strings.Repeat(text, times)}
		trial := &record.Trial{TaskID: text, Output: strings.Repeat(output, times), Transcript: []record.Entry{entry}}
		trial.Attempts = []record.Attempt{{Output: text}, {Output: strings.Repeat(text, times), Transcript: trial.Transcript}}
		want, err := jsonwalk.Encode(trial)
		require.NoError(t, err)
		if stored := store(trial, w.Blobs()); stored != nil {
			lean, err := jsonwalk.Encode(stored)
			require.NoError(t, err)
			got, err := files.whole(lean)
			require.NoError(t, err)
			if !bytes.Equal(want, got) {
				same := 0
				for same < min(len(want), len(got)) && want[same] == got[same] {
					same++
				}
				t.Fatalf("from byte %d on: want %.80q, got %.80q", same, want[same:], got[same:])
			}
		}
		if whole, err := files.whole(raw); err == nil && json.Valid(raw) {
			require.True(t, json.Valid(whole), "%s", whole)
		}
	})
}
