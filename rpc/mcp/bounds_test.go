package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// client connects to a server in this process.
func client(t *testing.T, s *server) *sdk.ClientSession {
	t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	session, err := s.mcp.Connect(context.Background(), theirs, nil)
	require.NoError(t, err)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), ours, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		_ = session.Wait()
	})
	return c
}

func call(t *testing.T, c *sdk.ClientSession, name string, arguments map[string]any) string {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(t, err)
	text := r.Content[0].(*sdk.TextContent).Text
	require.False(t, r.IsError, text)
	require.LessOrEqual(t, len(text), maxAnswer)
	return text
}

// An answer always fits into the context of a model, however large the data is, and states how
// much was left out.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const n = 50
	dir := t.TempDir()
	hostile := strings.Repeat(`\u0001\"\\`, 6_000)
	var b strings.Builder
	fmt.Fprintf(&b, "name: large\nconfig: {executor: mock, mock: {replies: [{match: x, output: \"%s\"}]}}\ntasks:\n", hostile)
	for i := range n {
		fmt.Fprintf(&b, "  - {id: t%03d-%s, name: \"%s\", prompt: \"x %s\", graders: [{name: g, type: text, config: {contains: [\"%s\"]}}]}\n",
			i, strings.Repeat("i", 100), strings.Repeat("n", 1000), strings.Repeat("p", 1000), strings.Repeat("q", 1000))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "eval.yaml"), []byte(b.String()), 0o600))
	for i := range 170 {
		sub := filepath.Join(dir, fmt.Sprintf("%s-%03d", strings.Repeat("d", 200), i))
		require.NoError(t, os.Mkdir(sub, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(sub, "eval.yaml"), []byte("name: many\ntasks: [{id: a, promt: x}]\n"), 0o600))
	}
	c := client(t, newTestServer(t, dir))

	var list struct {
		Evals   []any
		Omitted int
	}
	require.NoError(t, json.Unmarshal([]byte(call(t, c, "waza_eval_list", nil)), &list))
	require.Equal(t, 171, len(list.Evals)+list.Omitted)
	require.Positive(t, list.Omitted)
	var tasks struct {
		Tasks   []any
		Omitted int
	}
	require.NoError(t, json.Unmarshal([]byte(call(t, c, "waza_task_list", map[string]any{"eval_path": "eval.yaml"})), &tasks))
	require.Equal(t, n, len(tasks.Tasks)+tasks.Omitted)
	require.NoError(t, json.Unmarshal([]byte(call(t, c, "waza_task_list", map[string]any{"eval_path": "eval.yaml", "offset": n - 1})), &tasks))
	require.Len(t, tasks.Tasks, 1)
	call(t, c, "waza_eval_get", map[string]any{"path": "eval.yaml"})
	call(t, c, "waza_eval_validate", map[string]any{"path": "eval.yaml"})

	var run struct {
		Results []struct {
			TaskID string `json:"task_id"`
			Trial  int
		}
		Omitted int `json:"results_omitted"`
	}
	require.NoError(t, json.Unmarshal([]byte(call(t, c, "waza_run", map[string]any{"path": "eval.yaml", "wait_seconds": 600})), &run))
	require.Equal(t, n, len(run.Results)+run.Omitted)
	require.Positive(t, run.Omitted)
	require.Equal(t, 1, run.Results[0].Trial)
	seen := len(run.Results)
	for run.Omitted > 0 {
		run.Omitted = 0
		require.NoError(t, json.Unmarshal([]byte(call(t, c, "waza_run_result", map[string]any{"offset": seen, "limit": n})), &run))
		seen += len(run.Results)
	}
	require.Equal(t, n, seen, "the pages contain all tasks")
	call(t, c, "waza_run", map[string]any{"path": "eval.yaml", "wait_seconds": 600})
	call(t, c, "waza_run_compare", nil)
	call(t, c, "waza_run_history", map[string]any{"path": "eval.yaml"})
	call(t, c, "waza_results_runs", map[string]any{"limit": 200})
	call(t, c, "waza_results_summary", nil)
	for _, chars := range []int{0, 1, mostChars} {
		var trial struct{ Output string }
		require.NoError(t, json.Unmarshal([]byte(call(t, c, "waza_run_transcript", map[string]any{"max_chars": chars})), &trial))
		require.True(t, strings.HasSuffix(trial.Output, " more bytes)"))
	}
}

// The pages of a transcript contain each of its entries once, whatever their size.
func TestTranscriptPages(t *testing.T) {
	t.Parallel()
	trial := &record.Trial{TaskID: "a", TrialNum: 1}
	for i := range 500 {
		text := strings.Repeat("é\x01", i*i%5000)
		trial.Transcript = append(trial.Transcript,
			record.Entry{
				Type: record.EntryMessage, Text: text,
				Tool: &record.ToolCall{Name: "t", Result: json.RawMessage(`{"a":` + fmt.Sprint(i) + `}`)},
			})
	}
	for _, in := range []transcriptInput{{}, {Limit: 1}, {Limit: mostEntries, MaxChars: mostChars}, {MaxChars: 1}, {Limit: 1000}} {
		n, pages := 0, 0
		for {
			r, err := showTrial("run", "", trial, nil, in)
			require.NoError(t, err)
			encoded, err := json.Marshal(r)
			require.NoError(t, err)
			require.LessOrEqual(t, len(encoded), maxAnswer*3/2) // the encoding here escapes more characters than that on the wire
			require.NotEmpty(t, r.Entries)
			for _, e := range r.Entries {
				require.Equal(t, n, e.N)
				n++
			}
			if pages++; r.Next == nil {
				break
			}
			in.Offset = *r.Next
		}
		require.Equal(t, 500, n, "%+v in %d pages", in, pages)
	}
	r, err := showTrial("run", "", trial, nil, transcriptInput{Offset: 1000})
	require.NoError(t, err)
	require.Empty(t, r.Entries)
	require.Nil(t, r.Next)
}

// A client gets progress even while nothing of a run ends, so that it does not consider the
// server dead. If much ends, the progress is throttled.
func TestProgressBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		ours, theirs := sdk.NewInMemoryTransports()
		session, err := server.Connect(t.Context(), theirs, nil)
		require.NoError(t, err)
		var got []float64
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				got = append(got, r.Params.Progress)
			},
		}).Connect(t.Context(), ours, nil)
		require.NoError(t, err)
		req := &sdk.CallToolRequest{Session: session, Params: &sdk.CallToolParamsRaw{}}
		req.Params.SetProgressToken("p")
		p := newProgress(req, &record.Run{Tasks: []record.TaskRef{{ID: "a", Trials: 2000}}})
		time.Sleep(3*beat + time.Second)
		synctest.Wait()
		require.InDeltaSlice(t, []float64{0, 1. / 2, 2. / 3, 3. / 4}, got, 1e-9)
		for range 1000 {
			p.add(&record.Event{Type: record.TrialComplete, TaskID: "a", Verdict: record.Passed, Trial: &record.Trial{}})
			time.Sleep(time.Millisecond)
		}
		p.close()
		synctest.Wait()
		require.Less(t, len(got), 4+10)
		require.InDelta(t, 1000, got[len(got)-1], 0, "the last progress is never left out")
		for i := range got[1:] {
			require.Greater(t, got[i+1], got[i])
		}
		require.NoError(t, c.Close())
		require.NoError(t, session.Wait())
	})
}

// A call that waits for a run ends with the wait and with its client.
func TestWaits(t *testing.T) {
	t.Parallel()
	req := &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{}}
	wait, bounded, err := waitOf(req, nil)
	require.NoError(t, err)
	require.Equal(t, usualWait, wait)
	require.True(t, bounded)
	req.Params.SetProgressToken("p")
	_, bounded, err = waitOf(req, nil)
	require.NoError(t, err)
	require.False(t, bounded, "a client that sees progress waits to the end")
	half := 0.5
	wait, bounded, err = waitOf(req, &half)
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, wait)
	require.True(t, bounded)
}
