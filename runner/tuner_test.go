package runner_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// tunedModel proposes the prompts "1a", "1b", "2a", "2b". It answers the task better with a
// prompt that contains the letter b.
func tunedModel(t *testing.T, proposals *atomic.Int64) *runnertest.Model {
	t.Helper()
	return runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		if slices.Contains(a.Tools, "submit_prompts") {
			n := proposals.Add(1)
			return runnertest.Answer{Tool: "submit_prompts", InputTokens: 100, OutputTokens: 10, Arguments: map[string]any{"prompts": []any{
				map[string]any{"style": "terse", "prompt": fmt.Sprintf("%da", n)},
				map[string]any{"style": "step by step", "prompt": fmt.Sprintf("%db {{prompt}}", n)},
			}}}
		}
		text := "bad"
		if strings.Contains(a.System, "b") && !strings.Contains(a.System, "bare") {
			text = "good"
		}
		return runnertest.Answer{Text: text, InputTokens: 10, OutputTokens: 1}
	})
}

func tuningSuite(url, more string) string {
	return fmt.Sprintf(`-- eval.yaml --
name: s
kind: prompt_tune
config:
  executor: openai
  model: gpt-4o
  base_url: %s
  api_key_command: echo %s
  retry_errors: 0
  matrix: {system_prompt: [bare]}
  prompt_tune: {generations: 2, prompts: 2}
%s
tasks:
  - {id: x, prompt: "Is it?", graders: [{name: says, type: text, config: {contains: [good]}}]}
  - {id: y, prompt: "Really?", graders: [{name: says, type: text, config: {contains: [good]}}]}
`, url, runnertest.SecretKey, more)
}

func TestProposedPrompts(t *testing.T) {
	t.Parallel()
	var proposals atomic.Int64
	model := tunedModel(t, &proposals)
	res, events := runnertest.Run(t, tuningSuite(model.URL, "  parallel: true\n  workers: 3"), record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status)
	// Each prompt was used as proposed, for each task, after it was recorded.
	used := map[string]int{}
	var order []string
	for _, a := range model.Requests() {
		if len(a.Tools) > 0 {
			order = append(order, "propose")
			require.Contains(t, a.Prompt, "bare")
			require.Contains(t, a.Prompt, "Really?")
			require.Contains(t, a.Prompt, "Went wrong: says")
			continue
		}
		used[a.System]++
		order = append(order, a.System[:1])
	}
	require.Equal(t, map[string]int{"bare": 2, "1a": 2, "1b {{prompt}}": 2, "2a": 2, "2b {{prompt}}": 2}, used)
	require.Equal(t, "b,propose,1,propose,2", strings.Join(slices.Compact(order), ","))
	tune := res.Summary.Tune
	require.Equal(t, "system_prompt=generation 1, prompt 2", tune.Best)
	require.Len(t, tune.Rivals, 4) // two tasks are not enough to separate them
	require.Equal(t, []record.Prompt{
		{
			Generation: 1, Number: 1, Style: "terse", Text: "1a",
			Usage: &record.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: tune.Prompts[0].Usage.CostUSD},
		},
		{Generation: 1, Number: 2, Style: "step by step", Text: "1b {{prompt}}"},
		{
			Generation: 2, Number: 1, Style: "terse", Text: "2a",
			Usage: &record.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: tune.Prompts[0].Usage.CostUSD},
		},
		{Generation: 2, Number: 2, Style: "step by step", Text: "2b {{prompt}}"},
	}, tune.Prompts)
	// Ten trials with 10 and 1 tokens, two proposals with 100 and 10.
	require.EqualValues(t, 300, res.Summary.Usage.InputTokens)
	require.EqualValues(t, 30, res.Summary.Usage.OutputTokens)
	require.EqualValues(t, 200, res.Summary.UsageByRole.Judges.InputTokens)
	proposed := 0
	for _, e := range events {
		if e.Type == record.PromptProposed {
			proposed++
		}
	}
	require.Equal(t, 4, proposed)
}

// The model sees scores over the tasks that have one with every prompt. A prompt whose hard task
// ended in error came before those that failed it.
func TestProposalsSeeCommonTasks(t *testing.T) {
	t.Parallel()
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		switch {
		case len(a.Tools) > 0:
			return runnertest.Answer{Tool: "submit_prompts", Arguments: map[string]any{"prompts": []any{
				map[string]any{"style": "x", "prompt": "first"}, map[string]any{"style": "y", "prompt": "second"},
			}}}
		case a.System == "bare" && a.Prompt == "Really?":
			return runnertest.Answer{Status: http.StatusBadRequest}
		case a.System == "second" || a.Prompt == "Really?":
			return runnertest.Answer{Text: "bad"}
		}
		return runnertest.Answer{Text: "good"}
	})
	res, _ := runnertest.Run(t, tuningSuite(model.URL, ""), record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status)
	var last string
	for _, a := range model.Requests() {
		if len(a.Tools) > 0 {
			last = a.Prompt
		}
	}
	require.Equal(t, 2, strings.Count(last, "Score: 1.000"), last)
	require.Equal(t, 1, strings.Count(last, "Score: 0.000"), last)
	require.Equal(t, []record.LeftOutTask{{Task: "y", Cells: []string{"system_prompt=bare"}, CellCount: 1, Why: "ended in error"}},
		res.Summary.Common.LeftOut)
}

// A resumed run keeps the proposed prompts, and requests only the missing ones.
func TestProposedPromptsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before    string // the journal ends before the first line with it
		proposals int64  // in total
	}{
		"before the first proposal":   {`"type":"prompt_proposed"`, 4},
		"between two proposals":       {`"number":2,"style":"step by step","text":"1b`, 4},
		"after the first generation":  {`"prompt":{"generation":2,"number":1`, 3},
		"in the trials of the second": {`"taskId":"y[system_prompt=generation 2, prompt 1]"`, 2},
		"after the last trial":        {`"type":"run_complete"`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var proposals atomic.Int64
			model := tunedModel(t, &proposals)
			r, err := runner.New(runner.Options{StateDir: t.TempDir()})
			require.NoError(t, err)
			run := runnertest.Start(t, r, tuningSuite(model.URL, ""), record.Request{})
			<-run.Done()
			dir := run.Files().Dir()
			runnertest.CutRun(t, dir, runnertest.Before(c.before))
			kept := 0
			for _, line := range runnertest.JournalLines(t, dir) {
				if strings.Contains(string(line), `"type":"prompt_proposed"`) {
					kept++
				}
			}
			got, _ := runnertest.Resumed(t, r, run.ID())
			require.Equal(t, record.StatusCompleted, got.Status)
			require.Equal(t, c.proposals, proposals.Load())
			require.Len(t, got.Summary.Tune.Prompts, 4)
			require.Equal(t, 10, got.Summary.Trials.Done())
			for i, p := range got.Summary.Tune.Prompts {
				if i < kept {
					require.Equal(t, fmt.Sprint(i/2+1), p.Text[:1])
				}
			}
		})
	}
}

// Trials without a system prompt end in error when the model proposes none.
func TestNoProposal(t *testing.T) {
	t.Parallel()
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		if len(a.Tools) > 0 {
			return runnertest.Answer{Status: http.StatusBadRequest}
		}
		return runnertest.Answer{Text: "good", InputTokens: 10, OutputTokens: 1}
	})
	res, events := runnertest.Run(t, tuningSuite(model.URL, "  parallel: true\n  workers: 3"), record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Equal(t, 2, res.Summary.Trials.Passed)
	require.Equal(t, 8, res.Summary.Trials.Errors)
	require.Contains(t, runnertest.Logs(events), "cannot propose system prompts for generation 1: ")
	require.Len(t, slices.DeleteFunc(model.Requests(), func(a runnertest.Asked) bool { return len(a.Tools) == 0 }), 1)
}

// Workers that wait for proposals end when the run does.
func TestProposalsEndWithTheRun(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*runner.Run){"cancel": (*runner.Run).Cancel, "stop": (*runner.Run).Stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, hold := make(chan struct{}, 100), make(chan struct{})
			model := runnertest.NewModel(t, func(runnertest.Asked) runnertest.Answer {
				asked <- struct{}{}
				<-hold
				return runnertest.Answer{Text: "good"}
			})
			r, err := runner.New(runner.Options{StateDir: t.TempDir()})
			require.NoError(t, err)
			run := runnertest.Start(t, r, tuningSuite(model.URL, "  parallel: true\n  workers: 8"), record.Request{})
			<-asked
			<-asked
			end(run)
			close(hold)
			<-run.Done()
			require.Equal(t, record.StatusCancelled, run.Status())
		})
	}
}

// The cost of proposals counts for the budget of the run, also after it is resumed.
func TestProposalsSpendTheBudget(t *testing.T) {
	t.Parallel()
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer {
		if len(a.Tools) == 0 {
			return runnertest.Answer{Text: "bad", InputTokens: 10, OutputTokens: 1}
		}
		prompts := []any{map[string]any{"style": "x", "prompt": "a"}, map[string]any{"style": "y", "prompt": "b"}}
		return runnertest.Answer{Tool: "submit_prompts", InputTokens: 5000, OutputTokens: 10, Arguments: map[string]any{"prompts": prompts}}
	})
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	run := runnertest.Start(t, r, tuningSuite(model.URL, "  max_tokens: 4000"), record.Request{})
	<-run.Done()
	require.Equal(t, record.StatusCancelled, run.Status())
	require.Len(t, model.Requests(), 3) // two trials and the proposal, which exceeded the budget
	again, _ := runnertest.Resumed(t, r, run.ID())
	require.Equal(t, record.StatusCancelled, again.Status)
	require.Len(t, model.Requests(), 3)
	require.EqualValues(t, 5032, again.Summary.Usage.Total())
}
