//go:build unix

// Package dialogues_test records dialogues of clients and the daemon, which the tests of clients
// replay. README.md describes the format.
package dialogues_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/proc/proctest"
)

var update = flag.Bool("update", false, "rewrite the daemon's messages in the dialogues, and the expected state of clients")

func TestMain(m *testing.M) { os.Exit(proctest.WithWaza(m.Run)) }

// line is a line of a dialogue; exactly one of Note, Call, Client, Server, Die and Expect is
// set.
type line struct {
	Note string `json:"note,omitempty"`
	// Suite names the directory of the daemon's suite, and Over the transport if it is not
	// stdio; both are set only on the first note.
	Suite string `json:"suite,omitempty"`
	Over  string `json:"over,omitempty"`

	Call   json.RawMessage `json:"call,omitempty"`
	Client json.RawMessage `json:"client,omitempty"`
	Server json.RawMessage `json:"server,omitempty"`
	// Made is the reason why a line of the server was invented instead of recorded, or why a
	// line of the client is not sent to the daemon.
	Made   string          `json:"made,omitempty"`
	Die    bool            `json:"die,omitempty"`
	Expect json.RawMessage `json:"expect,omitempty"`
}

// recorded reports whether the line is a message of the daemon.
func (l *line) recorded() bool { return l.Server != nil && l.Made == "" }

func parse(t *testing.T, data []byte) []line {
	t.Helper()
	var lines []line
	for i, text := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		var l line
		require.NoError(t, d.Decode(&l), "line %d", i+1)
		lines = append(lines, l)
	}
	require.NotEmpty(t, lines[0].Note, "the first line describes the dialogue")
	require.NotEmpty(t, lines[0].Suite, "and names its suite")
	return lines
}

func format(t *testing.T, lines []line) []byte {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	for i := range lines {
		require.NoError(t, e.Encode(&lines[i]))
	}
	return out.Bytes()
}

// TestDialogues plays the client's part of each dialogue to the daemon. The daemon's messages
// must match the recording, and the model built from them must match the expected state. With
// -update, the test rewrites both.
func TestDialogues(t *testing.T) {
	t.Parallel()
	proctest.DependOnWaza(t)
	files, err := filepath.Glob("*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := format(t, newRecorder(t, parse(t, want)).record())
			if *update {
				require.NoError(t, os.WriteFile(file, got, 0o644))
				return
			}
			if diff := cmp.Diff(splitLines(want), splitLines(got)); diff != "" {
				t.Errorf("the dialogue differs (-want +got); if this is intended, run go test ./editors/dialogues -update\n%s", diff)
			}
		})
	}
}

func splitLines(b []byte) []string {
	var list []string
	for _, l := range bytes.Split(b, []byte("\n")) {
		list = append(list, string(l))
	}
	return list
}
