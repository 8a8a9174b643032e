package importing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/importing"
	"waza/runner/importing/source"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

// trials returns the trials of a file by the id of their task and their number.
func trials(t *testing.T, f *importing.File) map[string]*record.Trial {
	t.Helper()
	all := map[string]*record.Trial{}
	require.NoError(t, f.Read(func(task int, trial *record.Trial) error {
		all[fmt.Sprintf("%s/%d", f.Run.Tasks[task].ID, trial.TrialNum)] = trial
		return nil
	}))
	return all
}

func TestOpen(t *testing.T) {
	t.Parallel()
	f, err := importing.Open("microsoft/testdata/results-0.23.json")
	require.NoError(t, err)
	require.Equal(t, "code-explainer-eval", f.Run.Suite.Name)
	require.Equal(t, "code-explainer", f.Run.Suite.Skill)
	require.Equal(t, "claude-sonnet-4.6", f.Run.Config.Model)
	require.Equal(t, "copilot-sdk", f.Run.Config.Executor)
	require.Equal(t, "gpt-5", f.Run.Config.JudgeModel)
	require.Equal(t, &record.Imported{File: "results-0.23.json", EvalID: "run-1760000000"}, f.Run.Imported)
	require.True(t, strings.HasPrefix(f.Run.RunID, "20251009-085320.000-"), f.Run.RunID)
	require.Equal(t, record.StatusCompleted, f.Status)
	require.Equal(t, []string{`baseline_outcome: task "unknown" is omitted because no task has its id`}, f.Notes)
	ids, golden := []string{}, []string{}
	for i, ref := range f.Run.Tasks {
		ids = append(ids, fmt.Sprintf("%s %s %d", ref.ID, f.Tasks[i].Verdict, ref.Trials))
		if ref.Golden {
			golden = append(golden, ref.ID)
		}
	}
	require.Equal(t, []string{
		"explain#baseline failed 1", "explain passed 2", "flaky failed 3", "left-out skipped 1",
		"should_trigger#1 passed 1", "should_not_trigger#1 passed 1", "should_trigger#2 error 1",
	}, ids)
	require.Equal(t, []string{"explain"}, golden)

	s := f.Summary
	require.Equal(t, record.Counts{Total: 3, Passed: 1, Failed: 1, Skipped: 1}, s.Counts)
	require.Equal(t, record.Counts{Total: 6, Passed: 3, Failed: 1, Errors: 1, Skipped: 1}, s.Trials.Counts)
	require.Equal(t, int64(61000), s.DurationMS)
	require.InDelta(t, (1+(1+0.25)/2)/2, s.Score.Mean, 1e-12, "means of weighted scores of the trials that count")
	require.InDelta(t, 1, s.Baseline.PassRate.Gain, 1e-12)
	require.InDelta(t, 1, *s.Triggers.Accuracy, 1e-12)
	require.Equal(t, 1, s.Triggers.Errors)
	require.Equal(t, int64(1000), s.Usage.Total())

	all := trials(t, f)
	first := all["explain/1"]
	require.Equal(t, "It is a loop.", first.Output)
	require.Equal(t, int64(12000), first.DurationMS)
	require.Equal(t, []string{"brief", "mentions"}, []string{first.Graders[0].Name, first.Graders[1].Name})
	require.InDelta(t, 1, first.Graders[0].Weight, 0, "no weight means 1")
	var kinds []string
	for _, e := range first.Transcript {
		kinds = append(kinds, string(e.Type)+" "+e.Role+e.Text)
	}
	require.Equal(t, []string{"message userExplain a.py", "tool_call ", "message assistantIt is a loop.", "skill code-explainer"}, []string{
		"message user" + first.Transcript[0].Text, kinds[1], "message assistant" + first.Transcript[2].Text, kinds[3],
	})
	call := first.Transcript[1].Tool
	require.Equal(t, "view", call.Name)
	require.JSONEq(t, `{"path":"a.py"}`, string(call.Arguments))
	require.JSONEq(t, `"for i in x: pass"`, string(call.Result))
	require.Equal(t, "completed", call.Status)
	require.Equal(t, record.Errored, all["flaky/3"].Verdict)
	require.Equal(t, "copilot: no connection", all["flaky/3"].Error)
	require.InDelta(t, 0.25, *all["flaky/2"].Score, 1e-12)
}

func TestOpenLaterVersions(t *testing.T) {
	t.Parallel()
	f, err := importing.Open("microsoft/testdata/results-1.5.json")
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 9, 21, 8, 13, 20, 0, time.UTC), f.Run.CreatedAt)
	trial := trials(t, f)["t/1"]
	require.Equal(t, "Do it.", trial.Prompt)
	require.Equal(t, int64(15), trial.Usage.Total())
	require.Len(t, trial.Transcript, 1)
	call := trial.Transcript[0].Tool
	require.Equal(t, record.ToolCall{
		ID: "c1", Name: "bash", Arguments: call.Arguments, Result: call.Result, Status: "failed", DurationMS: 7,
	}, *call)
	require.JSONEq(t, `{"command":"ls"}`, string(call.Arguments))
}

// A run without a time has an unknown one, and not 0 ms.
func TestOpenWithoutTimes(t *testing.T) {
	t.Parallel()
	f, err := importing.Open(write(t, `{"eval_id":"e","eval_name":"n","timestamp":"2025-01-01T00:00:00Z","tasks":[`+
		`{"test_id":"t","runs":[{"status":"passed"},{"status":"passed","duration_ms":0}]}]}`))
	require.NoError(t, err)
	require.True(t, trials(t, f)["t/1"].Untimed)
	require.False(t, trials(t, f)["t/2"].Untimed)
}

// write writes a file that belongs to the test.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	good := `{"eval_id":"e","eval_name":"n","timestamp":"2025-01-01T00:00:00Z","tasks":[` + "\n" +
		`{"test_id":"t","runs":[` + "\n" + `{"status":"passed"%s}]}]}`
	run := func(members string) string { return fmt.Sprintf(good, members) }
	for text, want := range map[string]string{
		``:                                      `: the file ends in the middle of the document`,
		`[]`:                                    `: got [, expected an object or array`,
		`{"eval_id":"e","tasks"`:                `:1: tasks: the file ends in the middle of the document`,
		run(`,"duration_ms":-1`):                `:3: tasks[0].runs[0]: duration_ms must be between 0 and 3.2e12, got -1`,
		run(`,"validations":{"g":{"score":7}}`): `:3: tasks[0].runs[0]: score: 7, expected a number from 0 to 1`,
		run(`,"validations":{"g":{"score":"0.1","passed":true}}`): `:3: tasks[0].runs[0]: score: "0.1", ` +
			`expected a number from 0 to 1`,
		run(`,"validations":{"g":{"score":1e999,"passed":true}}`): `:3: tasks[0].runs[0]: score: 1e999, ` +
			`expected a number from 0 to 1`,
		run(`,"validations":{"g":{"score":null,"passed":true}}`): `:3: tasks[0].runs[0]: score: null, ` +
			`expected a number from 0 to 1`,
		run(`,"validations":{"g":{"passed":true}}`): `:3: tasks[0].runs[0]: ` +
			`validations.g.score is missing, expected a number from 0 to 1`,
		run(`,"validations":{"g":{"score":1}}`): `:3: tasks[0].runs[0]: ` +
			`validations.g.passed is missing, expected true or false`,
		run(`,"validations":{"g":{"score":1,"passed":"false"}}`): `:3: tasks[0].runs[0]: verdict: ` +
			`"false", expected true or false`,
		run(`,"validations":{"g":{"score":0,"passed":true,"score":1}}`): `:3: tasks[0].runs[0]: score: it is given twice`,
		`{"eval_id":"e","tasks":[],"trigger_results":[{"prompt":"p",` +
			`"should_trigger":true}]}`: `:1: trigger_results[0]: did_trigger is missing`,
		`{"eval_id":"e","tasks":[],"trigger_results":[{"prompt":"p",` +
			`"did_trigger":true}]}`: `:1: trigger_results[0]: should_trigger is missing`,
		`{"eval_id":"e","tasks":[],"trigger_results":[{"prompt":"p","should_trigger":true,` +
			`"did_trigger":"false"}]}`: `:1: trigger_results[0]: verdict: "false", expected true or false`,
		run(`,"validations":[]`):                       `:3: tasks[0].runs[0]: validations is a JSON array: expected an object`,
		run(`,"final_output":[]`):                      `:3: tasks[0].runs[0]: final_output is a JSON array: expected a text`,
		run(`,"run_number":"1"`):                       `:3: tasks[0].runs[0]: run_number is a JSON string: expected a number`,
		run(`,"status":"failed"`):                      `:3: tasks[0].runs[0]: verdict: it is given twice`,
		strings.Replace(run(``), "passed", "great", 1): `:3: tasks[0].runs[0]: status "great": expected passed, failed, error, skipped`,
		run(`,`): `:3: tasks[0].runs[0]: invalid character`,
		run(`}]},{"test_id":"t","runs":[{"status":"passed"`): `:3: tasks[1]: test_id "t" is not unique`,
		run(`}]},null,{"x":[{"a":1`):                         `:3: tasks[1]: got <nil>, expected an object or array`,
		run(`}]},{"runs":[{"status":"passed"`):               `:3: tasks[1]: test_id is missing`,
		run(``) + `{}`:                                       `: more than one JSON document`,
		`{"schemaVersion":"2.0",` + run(``)[1:]:              `: schemaVersion "2.0": expected 1 or 1.x`,
		`{"eval_id":"x",` + run(``)[1:]:                      `: duplicate member "eval_id"`,
		`{"eval_id":"e"}`:                                    `: no results: eval_id, eval_name, summary or tasks are missing`,
		strings.Replace(run(``), "2025", "1025", 1):          `: timestamp 1025-01-01T00:00:00Z: expected a year from 2000 to 9999`,
		strings.Replace(run(``), `"e"`, `7`, 1):              `: eval_id is a JSON number: expected a text`,
		`{"runId":"r","tasks":[]}`:                           `: a result of waza, which needs no import`,
		`{"timestamp":"x","type":"session_start","data":{"task_count":1}}` + "\n" +
			`{"timestamp":"x","type":"task_start","data":{}}`: `: a session log: it has progress and scores, but neither runs nor outputs`,
		`{"timestamp":"2025-01-01T00:00:00Z","skills":[{"skill_name":"s","output_files":["a.json","b.json"]}],` +
			`"overall":{}}`: `: a summary of several skills without their tasks`,
		`{"task_id":"t","task_name":"T","status":"passed",` +
			`"transcript":[]}`: `: the transcript of one task without its runs and statistics`,
	} {
		path := write(t, text)
		_, err := importing.Open(path)
		var bad *source.Error
		require.ErrorAs(t, err, &bad, "%s", text)
		require.Contains(t, err.Error(), path+want[:1], "%s", text)
		require.Contains(t, err.Error(), strings.TrimPrefix(want, ": "), "%s", text)
		if strings.Contains(text, "output_files") {
			require.Equal(t, "import the files that it lists: a.json, b.json", bad.Hint)
		}
	}
	_, err := importing.Open(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorContains(t, err, "none.json: no such file")
	_, err = importing.Open(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
	require.NoError(t, func() error { _, err := importing.Open(write(t, run(""))); return err }())
}

// A file larger than the limit is rejected unread.
func TestOpenLimit(t *testing.T) {
	t.Parallel()
	path := write(t, `{}`)
	require.NoError(t, os.Truncate(path, source.MaxBytes+1))
	_, err := importing.Open(path)
	require.ErrorContains(t, err, "has 268435457 bytes, the limit is 268435456")
}

func TestSave(t *testing.T) {
	t.Parallel()
	f, err := importing.Open("microsoft/testdata/results-0.23.json")
	require.NoError(t, err)
	store := journal.NewStore(t.TempDir())
	saved, err := importing.Save(t.Context(), store, f)
	require.NoError(t, err)
	require.Equal(t, &importing.Saved{RunID: f.Run.RunID}, saved)

	h, err := replay.Open(store, saved.RunID)
	require.NoError(t, err)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCompleted, p.Status)
	require.Equal(t, 61*time.Second, p.EndedAt.Sub(p.StartedAt))
	require.Equal(t, asJSON(t, f.Summary), asJSON(t, p.Summary))
	results, err := h.Results()
	require.NoError(t, err)
	require.Equal(t, asJSON(t, f.Tasks), asJSON(t, results))
	damage, err := h.Damage()
	require.NoError(t, err)
	require.Nil(t, damage)
	all := trials(t, f)
	require.NoError(t, h.Trials(func(task int, trial *record.Trial) error {
		id := h.Record().Tasks[task].ID
		want := all[fmt.Sprintf("%s/%d", id, trial.TrialNum)]
		want.TaskID = id
		if want.Verdict != record.Skipped {
			want.StartedAt = h.Record().CreatedAt
			want.Workspace = &record.Snapshot{
				Entries:    []record.SnapshotEntry{},
				Incomplete: "the imported results do not contain the files that the agent left",
			}
		}
		require.Equal(t, asJSON(t, want), asJSON(t, trial))
		return nil
	}))

	again, err := importing.Open("microsoft/testdata/results-0.23.json")
	require.NoError(t, err)
	again.Run.Suite.Path = "/elsewhere/eval.yaml"
	saved, err = importing.Save(t.Context(), store, again)
	require.NoError(t, err)
	require.Equal(t, &importing.Saved{RunID: f.Run.RunID, Already: true}, saved)
	ids, err := store.List()
	require.NoError(t, err)
	require.Len(t, ids, 1)
	require.NoDirExists(t, filepath.Join(store.Dir(), "staged"))
}

// A file of another tool cannot name a run of the store, because it would not be imported then.
func TestSaveIgnoresIDsOfOtherTools(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	own, err := importing.Open("microsoft/testdata/results-0.23.json")
	require.NoError(t, err)
	saved, err := importing.Save(t.Context(), store, own)
	require.NoError(t, err)
	f, err := importing.Open(write(t, `{"evalId":"`+saved.RunID+`","results":{"timestamp":"2026-01-01T00:00:00Z",`+
		`"results":[{"vars":{"a":1},"success":true,"score":1}]}}`))
	require.NoError(t, err)
	require.Equal(t, saved.RunID, f.Run.Imported.EvalID)
	other, err := importing.Save(t.Context(), store, f)
	require.NoError(t, err)
	require.Equal(t, &importing.Saved{RunID: f.Run.RunID}, other)
}

// The same results in a different form are the same run; any other results are a different run.
func TestSameResultsSameID(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("microsoft/testdata/results-0.23.json")
	require.NoError(t, err)
	id := func(text string) string {
		f, err := importing.Open(write(t, text))
		require.NoError(t, err)
		return f.Run.RunID
	}
	var doc any
	require.NoError(t, json.Unmarshal(text, &doc))
	require.Equal(t, id(string(text)), id(asJSON(t, doc)))
	require.NotEqual(t, id(string(text)), id(strings.Replace(string(text), "A loop.", "A leap.", 1)))
	require.NotEqual(t, id(string(text)), id(strings.Replace(string(text), `"did_trigger": true`, `"did_trigger": false`, 1)))
}

// A failed import leaves nothing behind.
func TestSaveIsWholeOrNot(t *testing.T) {
	t.Parallel()
	f, err := importing.Open("microsoft/testdata/results-0.23.json")
	require.NoError(t, err)
	store := journal.NewStore(t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err = importing.Save(ctx, store, f)
	require.ErrorIs(t, err, why)
	ids, err := store.List()
	require.NoError(t, err)
	require.Empty(t, ids)
	require.NoDirExists(t, filepath.Join(store.Dir(), "staged"))
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Any file is either rejected or its counts add up.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"results-0.23.json", "results-1.5.json"} {
		text, err := os.ReadFile(filepath.Join("microsoft", "testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := write(t, string(text))
		importing.Recognizes(path)
		file, err := importing.Open(path)
		if err != nil {
			var bad *source.Error
			require.ErrorAs(t, err, &bad)
			return
		}
		n := 0
		require.NoError(t, file.Read(func(task int, trial *record.Trial) error {
			n++
			ref := file.Run.Tasks[task]
			require.GreaterOrEqual(t, trial.TrialNum, ref.First)
			require.Less(t, trial.TrialNum, ref.First+ref.Trials)
			return nil
		}))
		want := 0
		for i := range file.Run.Tasks {
			want += file.Run.Tasks[i].Trials
		}
		require.Equal(t, want, n)
		require.True(t, journal.ValidID(file.Run.RunID))
	})
}
