package replay_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

const talkative = `
-- eval.yaml --
name: talkative
config: {trials_per_task: 4, max_attempts: 2, executor: agent}
graders: [{name: odd, type: text, config: {not_contains: [WRONG]}}]
tasks: [{id: a, inputs: {prompt: talk, environment: {SOME_API_KEY: sk-much-talked-about}}}]
`

// large is the output of the talkative agent.
var large = strings.Repeat("so much to say <&> \"quoted\" \u2028 sk-much-talked-about\n", 1000)

func talk(_ context.Context, t *executor.Trial) (string, error) {
	t.Transcript.Message("assistant", large)
	t.Transcript.ToolCall(record.ToolCall{Name: "bash", Arguments: json.RawMessage(`{"trial":{"blobs":{"output":12345678901234567890}}}`)})
	if t.Num == 2 {
		return "little", nil
	}
	if t.Num == 3 && t.Attempt == 1 {
		return "WRONG " + large, nil
	}
	return "RIGHT " + large, nil
}

// trialsOf returns the trials in events, in the order of their numbers.
func trialsOf(events []*record.Event) []*record.Trial {
	list := []*record.Trial{}
	for _, e := range events {
		if e.Trial != nil {
			list = append(list, e.Trial)
		}
	}
	return list
}

// same compares values by their JSON.
func same(t *testing.T, want, got any) {
	t.Helper()
	var plain [2]any
	for i, v := range []any{want, got} {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &plain[i]))
	}
	if !reflect.DeepEqual(plain[0], plain[1]) {
		t.Fatalf("want %.2000v, got %.2000v", plain[0], plain[1])
	}
}

// Large texts are stored beside the journal, compressed, once and without secrets. Every reader
// receives whole trials, and an amendment stores nothing again.
func TestStoredContents(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r := runnertest.AgentRunner(t, state, talk)
	live := runnertest.Start(t, r, talkative, record.Request{})
	reported := trialsOf(runnertest.Follow(t, live, 1))
	<-live.Done()
	require.Len(t, reported, 4)
	require.Greater(t, len(reported[0].Output), 40_000)
	require.NotContains(t, reported[0].Output, "sk-much")
	require.Equal(t, "little", reported[1].Output)
	require.Len(t, reported[2].Attempts, 1)
	require.Contains(t, reported[2].Attempts[0].Output, "WRONG")
	require.Greater(t, len(reported[2].Attempts[0].Transcript[0].Text), 40_000)

	dir := filepath.Join(state, "runs", live.ID())
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		return info.Size()
	}
	require.Less(t, size("journal.jsonl"), int64(20_000))
	require.Less(t, size("result.json"), int64(20_000))
	require.Less(t, size("files.gz"), int64(50_000))
	contents := unpacked(t, filepath.Join(dir, "files.gz"))
	require.Equal(t, 1, strings.Count(contents, "WRONG"))
	require.Equal(t, 1, strings.Count(contents, "RIGHT"), "which three trials said")
	require.NotContains(t, contents, "sk-much")

	check := func(h record.Handle, want []*record.Trial) {
		t.Helper()
		res := runnertest.ResultOf(t, h)
		n := 0
		require.NoError(t, h.Trials(func(_ int, got *record.Trial) error {
			same(t, want[n], got)
			same(t, got, &res.Task(t, "a").Trials[n])
			one, err := r.Amender().Trial(h.ID(), "a", n+1)
			require.NoError(t, err)
			same(t, got, one)
			n++
			return nil
		}))
		require.Equal(t, 4, n)
		require.NotContains(t, text(t, h), `"stored"`)
	}
	past, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	check(live, reported)
	check(past, reported)
	for _, from := range []int64{1, 6, 9} {
		for _, h := range []record.Handle{live, past} {
			got := trialsOf(runnertest.Follow(t, h, from))
			same(t, reported[4-len(got):], got)
		}
	}

	before, lines := size("files.gz"), size("journal.jsonl")
	runnertest.Flip(t, r, live.ID(), 0, 3)
	runnertest.Flip(t, r, live.ID(), 0, 3)
	require.Equal(t, before, size("files.gz"))
	require.Less(t, size("journal.jsonl"), lines+15_000)
	check(past, reported)
	require.NoError(t, os.Remove(filepath.Join(dir, "result.json")))
	check(past, reported)
}

// unpacked returns everything in a file of contents.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}

// A missing content loses only itself: the rest of the trial is delivered, with a message in its
// place.
func TestLostContents(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r := runnertest.AgentRunner(t, state, talk)
	live := runnertest.Start(t, r, talkative, record.Request{})
	reported := trialsOf(runnertest.Follow(t, live, 1))
	<-live.Done()
	path := filepath.Join(state, "runs", live.ID(), "files.gz")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	past, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	for name, damage := range map[string]func() error{
		"cut":     func() error { return os.Truncate(path, int64(len(whole)/2)) },
		"changed": func() error { return os.WriteFile(path, []byte(strings.Repeat("x", len(whole))), 0o600) },
		"gone":    func() error { return os.Remove(path) },
	} {
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		require.NoError(t, damage())
		lost := 0
		got := trialsOf(runnertest.Follow(t, past, 1))
		require.Len(t, got, len(reported), name)
		res := runnertest.ResultOf(t, past)
		for i, tr := range got {
			same(t, tr, &res.Task(t, "a").Trials[i])
			if strings.Contains(tr.Output, "is missing") {
				require.Contains(t, tr.Output, fmt.Sprintf("[the output of %d bytes", len(reported[i].Output)))
				tr.Output = reported[i].Output
				lost++
			}
			if len(tr.Transcript) == 1 && tr.Transcript[0].Type == record.EntryDropped {
				require.Contains(t, tr.Transcript[0].Text, "is missing")
				tr.Transcript = reported[i].Transcript
				lost++
			}
			for j := range tr.Attempts {
				tr.Attempts[j].Output, tr.Attempts[j].Transcript = reported[i].Attempts[j].Output, reported[i].Attempts[j].Transcript
			}
			same(t, reported[i], tr)
		}
		require.Positive(t, lost, name)
	}
}
