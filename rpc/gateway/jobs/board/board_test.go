package board_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/jobs/board"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const owner = "owner"

// serve serves a board of a runner until the test ends.
func serve(t *testing.T, r *runner.Runner, userOf func(run string) string) *board.Board {
	t.Helper()
	b := board.New(board.Options{Runner: r, UserOf: func(_ context.Context, run string) (string, error) { return userOf(run), nil }})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { b.Serve(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	return b
}

func ours(string) string { return owner }

func says(context.Context, *executor.Trial) (string, error) { return "good", nil }

func suite(tasks, trials int) string {
	return fmt.Sprintf("-- eval.yaml --\nname: s\nskill: s\nconfig: {executor: agent, workers: 4, parallel: true, "+
		"trials_per_task: %d}\ntasks:\n%s",
		trials, runnertest.Inline(tasks))
}

// Each user sees the last ten jobs, even after many later jobs of other users.
func TestRecentJobs(t *testing.T) {
	t.Parallel()
	r := runnertest.AgentRunner(t, t.TempDir(), says)
	var ids []string
	for range 25 {
		run := runnertest.Start(t, r, suite(1, 1), record.Request{})
		<-run.Done()
		ids = append(ids, run.ID())
	}
	b := serve(t, r, func(run string) string {
		if run == ids[0] || run == ids[3] {
			return "ann"
		}
		return owner
	})
	recent := func(v board.Viewer) (list []string) {
		m, err := b.Jobs(t.Context(), v)
		require.NoError(t, err)
		require.Empty(t, m.Active)
		for _, j := range m.Recent {
			require.Equal(t, board.Done, j.Status)
			list = append(list, j.ID)
		}
		return list
	}
	require.Equal(t, []string{ids[3], ids[0]}, recent(board.Viewer{User: "ann"}))
	require.Empty(t, recent(board.Viewer{User: "bob"}))
	mine := recent(board.Viewer{User: owner})
	require.Len(t, mine, 10)
	require.Equal(t, []string{ids[24], ids[15]}, []string{mine[0], mine[9]})
	require.Equal(t, mine, recent(board.Viewer{User: "root", Admin: true}))
	for _, c := range []struct {
		viewer board.Viewer
		id     string
		want   error
	}{
		{board.Viewer{User: owner}, ids[24], board.ErrOver},
		{board.Viewer{User: owner}, ids[1], board.ErrOver}, // no longer on the board
		{board.Viewer{User: "ann"}, ids[1], board.ErrUnknown},
		{board.Viewer{User: owner}, ids[0], board.ErrUnknown},
		{board.Viewer{User: owner}, "", board.ErrUnknown},
		{board.Viewer{User: owner}, "..", board.ErrUnknown},
	} {
		require.Equal(t, c.want, b.Cancel(t.Context(), c.viewer, c.id), c.id)
	}
}

// Every watcher gets each result once, for runs of any process. Progress is sent at most ten
// times a second.
func TestWatchersGetEachResultOnce(t *testing.T) {
	t.Parallel()
	own := runnertest.AgentRunner(t, t.TempDir(), says)
	other := runnertest.AgentRunner(t, own.Catalog().StateDir(), says)
	type watched struct {
		over     chan struct{}
		results  map[string]int // by case
		progress int
	}
	var all []*watched
	for _, r := range []*runner.Runner{own, own, other} {
		w := &watched{over: make(chan struct{}), results: map[string]int{}}
		stop, err := serve(t, r, ours).Watch(t.Context(), board.Viewer{User: owner}, func(msg []byte) {
			var m struct {
				Type string
				Data struct {
					Case string `json:"test_case_id"`
				}
			}
			if json.Unmarshal(msg, &m) != nil {
				return
			}
			switch m.Type {
			case "tool_eval_result":
				w.results[m.Data.Case]++
			case "job_progress":
				w.progress++
			case "job_completed":
				close(w.over)
			}
		})
		require.NoError(t, err)
		defer stop()
		all = append(all, w)
	}
	start := time.Now()
	runnertest.Start(t, own, suite(5, 400), record.Request{})
	for _, w := range all {
		<-w.over
		require.LessOrEqual(t, w.progress, 1+int(time.Since(start)/(100*time.Millisecond)))
		missing := 0
		for task := range 5 {
			for trial := 1; trial <= 400; trial++ {
				if w.results[fmt.Sprintf("t%d#%d", task, trial)] != 1 {
					missing++
				}
			}
		}
		require.Zero(t, missing)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "",
		"no such model gpt-4":                    "no such model gpt-4",
		"the key sk-0123456789abcdef is invalid": "the key [redacted] is invalid",
		"Authorization: Bearer abcdefgh.ijkl failed":     "Authorization: Bearer [redacted] failed",
		`{"api_key": "hunter22", "model": "m"}`:          `{"api_key": "[redacted]", "model": "m"}`,
		"GET /v1?access_token=abcdef12&x=1":              "GET /v1?access_token=[redacted]&x=1",
		"token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.abc": "token [redacted]",
	} {
		require.Equal(t, want, board.Failure(text))
	}
	long := board.Failure(strings.Repeat("ä", 100_000))
	require.Equal(t, 500, utf8.RuneCountInString(long))
	require.True(t, strings.HasSuffix(long, "ä…"))
}

// A board that starts after a prompt was proposed still includes the prompt.
func TestProposedPromptsOfBefore(t *testing.T) {
	t.Parallel()
	asked, hold := make(chan struct{}, 10), make(chan struct{})
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		if len(a.Tools) > 0 {
			return runnertest.Answer{
				Tool:      "submit_prompts",
				Arguments: map[string]any{"prompts": []any{map[string]any{"style": "terse", "prompt": "Be brief."}}},
			}
		}
		if a.System == "Be brief." {
			asked <- struct{}{}
			<-hold
		}
		return runnertest.Answer{Text: "good"}
	})
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	run := runnertest.Start(t, r, promptTuning(model.URL, "{generations: 1, prompts: 1}"), record.Request{})
	<-asked
	results := make(chan []byte, 10)
	stop, err := serve(t, r, ours).Watch(t.Context(), board.Viewer{User: owner}, func(msg []byte) {
		if bytes.Contains(msg, []byte(`"prompt_eval_result"`)) {
			results <- msg
		}
	})
	require.NoError(t, err)
	defer stop()
	close(hold)
	require.Contains(t, string(<-results), `"data":{"prompt_index":1,"style":"terse","score":1,"prompt_preview":"Be brief."}`)
	<-run.Done()
}

// promptTuning returns a suite with system prompts that a model proposes.
func promptTuning(url, tuning string) string {
	return fmt.Sprintf(`-- eval.yaml --
name: s
kind: prompt_tune
config:
  executor: openai
  model: gpt-4o
  base_url: %s
  api_key_command: echo key
  retry_errors: 0
  matrix: {system_prompt: [bare]}
  prompt_tune: %s
tasks: [{id: x, prompt: "Is it?", graders: [{name: says, type: text, config: {contains: [good]}}]}]
`, url, tuning)
}

// The best score of a generation is that of the tasks that its prompts have in common. It was 0.5
// here: the best prompt solves the easy task and fails the hard one, which is in error for the
// other prompt. For that reason the other prompt also preceded it among the survivors.
func TestGenerationOnCommonTasks(t *testing.T) {
	t.Parallel()
	for _, easy := range []string{"bad", "good"} {
		t.Run(easy, func(t *testing.T) {
			t.Parallel()
			generationOnCommonTasks(t, easy)
		})
	}
}

// generationOnCommonTasks has a prompt whose answer to the easy task is given.
func generationOnCommonTasks(t *testing.T, easy string) {
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		switch {
		case len(a.Tools) > 0:
			return runnertest.Answer{Tool: "submit_prompts", Arguments: map[string]any{"prompts": []any{
				map[string]any{"style": "structured", "prompt": "long"}, map[string]any{"style": "terse", "prompt": "short"},
			}}}
		case a.System == "short" && a.Prompt == "Hard?":
			return runnertest.Answer{Status: http.StatusBadRequest}
		case a.System == "short":
			return runnertest.Answer{Text: easy}
		case a.System == "long" && a.Prompt != "Hard?":
			return runnertest.Answer{Text: "good"}
		}
		return runnertest.Answer{Text: "bad"}
	})
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	type message struct {
		Type       string               `json:"type"`
		Generation int                  `json:"generation"`
		Best       *float64             `json:"best_score"`
		Survivors  []int                `json:"survivors"`
		LeftOut    []record.LeftOutTask `json:"left_out"`
	}
	messages := make(chan message, 1000)
	stop, err := serve(t, r, ours).Watch(t.Context(), board.Viewer{User: owner}, func(msg []byte) {
		var m message
		if json.Unmarshal(msg, &m) == nil {
			messages <- m
		}
	})
	require.NoError(t, err)
	defer stop()
	suite := strings.Replace(promptTuning(model.URL, "{generations: 1, prompts: 2}"), "tasks: [",
		`tasks: [{id: hard, prompt: "Hard?", graders: [{name: says, type: text, config: {contains: [good]}}]}, `,
		1)
	runnertest.Start(t, r, suite, record.Request{})
	for m := range messages {
		if m.Type == "generation_complete" && m.Generation == 1 {
			require.InDelta(t, 1, *m.Best, 1e-9)
			require.Equal(t, []int{1, 2}, m.Survivors)
		}
		if m.Type == "tune_complete" {
			require.Equal(t, []record.LeftOutTask{
				{Task: "hard", Cells: []string{"system_prompt=generation 1, prompt 2"}, CellCount: 1, Why: "ended in error"},
			},
				m.LeftOut)
			break
		}
	}
}

// The test checks all messages of a run with system prompts that a model proposes.
func TestProposedPrompts(t *testing.T) {
	t.Parallel()
	var proposals atomic.Int64
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		switch {
		case len(a.Tools) > 0 && proposals.Add(1) > 1:
			return runnertest.Answer{Status: http.StatusBadRequest}
		case len(a.Tools) > 0:
			return runnertest.Answer{Tool: "submit_prompts", Arguments: map[string]any{"prompts": []any{
				map[string]any{"style": "terse", "prompt": "short"}, map[string]any{"style": "structured", "prompt": "long"},
			}}}
		case a.System == "long":
			return runnertest.Answer{Text: "good"}
		}
		return runnertest.Answer{Text: "bad"}
	})
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	messages := make(chan map[string]any, 1000)
	stop, err := serve(t, r, ours).Watch(t.Context(), board.Viewer{User: owner}, func(msg []byte) {
		var m map[string]any
		if json.Unmarshal(msg, &m) == nil && m["type"] != "job_progress" && m["type"] != "sync" {
			messages <- m
		}
	})
	require.NoError(t, err)
	defer stop()
	runnertest.Start(t, r, promptTuning(model.URL, "{generations: 2, prompts: 2}"), record.Request{})
	var got []string
	for {
		m := <-messages
		line := fmt.Sprint(m["type"])
		for _, name := range []string{
			"generation", "prompt_index", "style", "prompt_text", "overall_score", "best_score",
			"best_score_observed", "best_score_basis", "best_index",
		} {
			if v, ok := m[name]; ok {
				line += fmt.Sprintf(" %s=%v", name, v)
			}
		}
		if data, ok := m["data"].(map[string]any); ok {
			line += fmt.Sprintf(" (%v %v %v)", data["style"], data["score"], data["prompt_preview"])
		}
		if m["error"] != nil {
			require.Contains(t, m["error"], "no system prompt: judge gpt-4o: ")
		}
		got = append(got, line)
		if m["type"] == "job_completed" {
			break
		}
	}
	require.Equal(t, []string{
		"job_created", "job_started", "tune_start",
		"generation_start generation=0",
		"prompt_eval_start generation=0 prompt_index=0",
		"prompt_eval_result generation=0 prompt_index=0 overall_score=0 (given 0 bare)",
		"generation_complete generation=0 best_score=0",
		"generation_start generation=1",
		"prompt_generated generation=1 prompt_index=1 style=terse prompt_text=short",
		"prompt_generated generation=1 prompt_index=2 style=structured prompt_text=long",
		"prompt_eval_start generation=1 prompt_index=1",
		"prompt_eval_result generation=1 prompt_index=1 overall_score=0 (terse 0 short)",
		"prompt_eval_start generation=1 prompt_index=2",
		"prompt_eval_result generation=1 prompt_index=2 overall_score=1 (structured 1 long)",
		"generation_complete generation=1 best_score=1",
		"generation_error generation=2",
		"tune_complete best_score=0.340593659 best_score_observed=1 best_score_basis=shrunk best_index=2",
		"job_completed",
	}, got)
}

// The list of runs can be older than the end of a run. The job does not restart in that case.
func TestStateOlderThanTheEnd(t *testing.T) {
	t.Parallel()
	started, gate := make(chan struct{}), make(chan struct{})
	r := runnertest.AgentRunner(t, t.TempDir(), func(context.Context, *executor.Trial) (string, error) {
		close(started)
		<-gate
		return "good", nil
	})
	b := serve(t, r, ours)
	var created atomic.Int32
	over := make(chan struct{}, 2)
	stop, err := b.Watch(t.Context(), board.Viewer{User: owner}, func(msg []byte) {
		switch {
		case bytes.Contains(msg, []byte(`"job_created"`)):
			created.Add(1)
		case bytes.Contains(msg, []byte(`"job_completed"`)):
			over <- struct{}{}
		}
	})
	require.NoError(t, err)
	defer stop()
	run := runnertest.Start(t, r, suite(1, 1), record.Request{})
	<-started
	old, ok := r.Catalog().ReadInfo(run.ID())
	require.True(t, ok)
	require.Equal(t, record.StatusRunning, old.Status)
	close(gate)
	<-over
	<-run.Done()
	b.Change(t.Context(), old)
	require.EqualValues(t, 1, created.Load())
	m, err := b.Jobs(t.Context(), board.Viewer{User: owner})
	require.NoError(t, err)
	require.Len(t, m.Recent, 1)
	require.Equal(t, "s: 1 of 1 cases", m.Recent[0].Detail)
}

// Clients of the job stream saw the results of a damaged record without a word about the damage.
func TestJobsShowDamage(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r := runnertest.AgentRunner(t, state, says)
	run := runnertest.Start(t, r, suite(1, 1), record.Request{})
	<-run.Done()
	b := serve(t, r, ours)
	damage := func(b *board.Board) string {
		m, err := b.Jobs(t.Context(), board.Viewer{User: owner})
		require.NoError(t, err)
		require.Len(t, m.Recent, 1)
		return m.Recent[0].Damage
	}
	require.Empty(t, damage(b))
	runnertest.DamageRun(t, state, run.ID())
	const want = "the journal is damaged at line "
	require.Contains(t, damage(b), want)
	stop, err := b.Watch(t.Context(), board.Viewer{User: owner}, func(msg []byte) { require.Contains(t, string(msg), `"damage":"`+want) })
	require.NoError(t, err)
	stop()
	require.Contains(t, damage(serve(t, r, ours)), want, "a server that starts later")
}
