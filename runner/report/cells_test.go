package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report"
)

// ofCells returns the report of a run of two tasks in three cells each.
func ofCells(names ...string) *report.Report {
	rec := &record.Run{RunID: "r"}
	rep := &record.Summary{}
	one, took := 1.0, record.Spread{Distribution: record.Distribution{Median: 1234}}
	for _, task := range []string{"create-http-function", "deploy-with-bicep"} {
		for i, name := range names {
			ref := record.TaskRef{ID: task + "[" + name + "]", Task: task, Trials: 5, Cell: &record.Cell{Name: name, Model: name}}
			rec.Tasks = append(rec.Tasks, ref)
			if task != "create-http-function" {
				continue
			}
			counts := record.TrialCounts{
				Counts: record.Counts{Total: 10, Passed: 10},
				Rate:   record.Rate{PassRate: &one, PassRateInterval: &record.Interval{Low: 0.72, High: 1}},
			}
			cell := &record.CellResult{Cell: ref.Cell, Tasks: record.Counts{Total: 2, Passed: 2}, DurationMS: &took}
			if i > 0 {
				cell.Usage = &record.Usage{InputTokens: 1000, OutputTokens: 234, CostUSD: 0.0123}
				cell.Score = &record.ScoreStats{Distribution: record.Distribution{N: 2, Mean: 0.9}}
			}
			rep.Groups = append(rep.Groups, record.GroupResult{Group: name, TrialCounts: counts, CellResult: cell})
		}
	}
	r := report.New(rec)
	for i := range r.Tasks {
		r.Tasks[i].Result = &record.Task{
			Verdict: record.Passed,
			Trials: record.TrialCounts{
				Counts: record.Counts{Total: 5, Passed: 5},
				Rate:   record.Rate{PassRate: &one, PassRateInterval: &record.Interval{Low: 0.57, High: 1}},
			},
		}
	}
	n := len(r.Tasks)
	rep.Counts, rep.Trials.Counts = record.Counts{Total: n, Passed: n}, record.Counts{Total: 5 * n, Passed: 5 * n}
	r.Summary, r.Status = rep, record.StatusCompleted
	return r
}

func printed(t *testing.T, r *report.Report, width int) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.Write(&b, report.Options{Width: width}))
	for line := range strings.Lines(b.String()) {
		if width > 0 && !strings.Contains(line, "counted trials") { // a sentence
			require.LessOrEqual(t, report.Columns(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
	return b.String()
}

// Columns of tool scores exist if a task or a cell has tool scores.
func TestToolColumns(t *testing.T) {
	t.Parallel()
	r, params := ofCells("a", "b"), 0.8
	require.NotContains(t, printed(t, r, 0), "Tool")
	tools := &record.ToolScores{Selection: 1, Params: &params, Overall: 0.9}
	r.Tasks[0].Result.Tools, r.Summary.Groups[1].Tools, r.Summary.Tools = tools, &record.ToolScores{Selection: 0.5, Overall: 0.5}, tools
	text := printed(t, r, 0)
	require.Regexp(t, `(?m)^Task .* Median time +Tools +Arguments +Tool score\n(.*\n)  a .* 1\.00 +0\.80 +0\.90\n  b .* – +– +–$`, text)
	require.Regexp(t, `(?m)^Cell .* Cost +Tools +Tool score\na .* – +–\nb .* 0\.50 +0\.50$`, text)
	require.Contains(t, text, "\nTool scores: selection 1.00, arguments 0.80, overall 0.90\n")
	printed(t, r, 80)
}

// The cells of a task follow it, and all of them are compared.
func TestCells(t *testing.T) {
	t.Parallel()
	require.Equal(t, `Task                      Verdict  Trials  Score  Pass rate  95 % interval  Median time
create-http-function
  gpt-5-mini              passed   5/5     –      100 %      57–100 %       –
  claude-sonnet-4-5       passed   5/5     –      100 %      57–100 %       –
  llama-3.3-70b-instruct  passed   5/5     –      100 %      57–100 %       –
deploy-with-bicep
  gpt-5-mini              passed   5/5     –      100 %      57–100 %       –
  claude-sonnet-4-5       passed   5/5     –      100 %      57–100 %       –
  llama-3.3-70b-instruct  passed   5/5     –      100 %      57–100 %       –

Cell                    Passed  Trials  Pass rate  95 % interval  Score  Median time  Tokens  Cost
gpt-5-mini              2/2     10/10   100 %      72–100 %       –      1.2 s        –       –
claude-sonnet-4-5       2/2     10/10   100 %      72–100 %       0.90   1.2 s        1234    $0.0123
llama-3.3-70b-instruct  2/2     10/10   100 %      72–100 %       0.90   1.2 s        1234    $0.0123

6 of 6 tasks passed; 30 of 30 counted trials passed; 0 ms
`, printed(t, ofCells("gpt-5-mini", "claude-sonnet-4-5", "llama-3.3-70b-instruct"), 110))
}

// In narrow terminals, columns are dropped first, and then the common part of cell names.
func TestCellsInLittleRoom(t *testing.T) {
	t.Parallel()
	var names []string
	for _, style := range []string{"formal", "terse"} {
		names = append(names, fmt.Sprintf("llama-3.3-70b-instruct,temperature=0.7,top_p=0.95,style=%s", style))
	}
	text := printed(t, ofCells(names...), 80)
	require.Contains(t, text, `create-http-function
  llama-3.3-70b-instruct,….7,top_p=0.95,style=formal  passed   5/5     100 %
`)
	text = printed(t, ofCells(names...), 60)
	require.Contains(t, text, "style=formal  passed")
	require.Contains(t, text, "style=terse  2/2")
}

// The report names the best cell of a tuning and its rivals, in lines that fit.
func TestTune(t *testing.T) {
	t.Parallel()
	r := ofCells("a", "b", "c")
	show := func(tune *record.TuneResult) string {
		r.Summary.Tune = tune
		var b strings.Builder
		require.NoError(t, r.Write(&b, report.Options{Width: 60}))
		_, after, ok := strings.Cut(b.String(), "Best cell")
		require.Equal(t, tune != nil, ok)
		for line := range strings.Lines(after) {
			require.LessOrEqual(t, len(line), 61)
		}
		lines, _, _ := strings.Cut(after, "\n\n")
		return strings.Join(strings.Fields(lines), " ")
	}
	require.Empty(t, show(nil))
	require.Equal(t, ": b", show(&record.TuneResult{Best: "b"}))
	require.Equal(t, ": b Possibly as good (not separated by these trials): a; c",
		show(&record.TuneResult{Best: "b", Rivals: []string{"a", "c"}}))
	require.Equal(t, ": b too many cells", show(&record.TuneResult{Best: "b", Note: "too many cells"}))
	estimate := &record.TuneScore{
		Value: 0.842, Interval: record.Interval{Low: 0.701, High: 0.949}, Observed: 0.911,
		Basis: record.BasisShrunk, Cells: 12,
	}
	require.Equal(t, ": b Score 0.84, 95 % interval 0.70–0.95, shrunk because it is the best of 12 cells; its "+
		"trials score 0.91, and no fresh trials confirm it",
		show(&record.TuneResult{Best: "b", Score: estimate}))
	estimate.Basis = record.BasisMeasured
	require.Equal(t, ": b Score 0.84, 95 % interval 0.70–0.95, measured: there was only one cell to choose from",
		show(&record.TuneResult{Best: "b", Score: estimate}))
	r.Summary.Common = &record.CommonTasks{
		Tasks:    3,
		LeftOut:  []record.LeftOutTask{{Task: "hard", Cells: []string{"a", "c", "d"}, CellCount: 5, Why: "ended in error"}},
		Unscored: []string{"e"},
	}
	require.Equal(t, ": b Ranked by the tasks with a score in every cell: 3 of 4 tasks. Left out: hard (ended in "+
		"error in a, c, d and 2 more) "+
		"Cells without any score, which are not compared: e", show(&record.TuneResult{Best: "b"}))
	r.Summary.Tune = nil
	var text strings.Builder
	require.NoError(t, r.Write(&text, report.Options{}))
	require.Contains(t, text.String(),
		"Cells can be compared only by the tasks with a score in every cell: 3 of 4 tasks. Left out: hard (ended in error")
	r.Summary.Common = nil
	many := strings.Split(strings.Repeat("x ", 10), " ")[:10]
	require.Contains(t, show(&record.TuneResult{Best: "b", Rivals: many}), "x; x and 2 more")
}

// The report prints a system prompt that a model proposed if it is the best.
func TestTunedPrompt(t *testing.T) {
	t.Parallel()
	r := ofCells("given", "proposed")
	r.Summary.Groups[1].Cell.Generation, r.Summary.Groups[1].Cell.Proposal = 2, 1
	prompts := []record.Prompt{
		{Generation: 1, Number: 1, Text: "other"},
		{Generation: 2, Number: 1, Text: "Use tools.\x1b[2J\n\n" + strings.Repeat("Be brief.\n", 40)},
	}
	r.Summary.Tune = &record.TuneResult{Best: "proposed", Prompts: prompts}
	var b strings.Builder
	require.NoError(t, r.Write(&b, report.Options{Width: 80}))
	require.Contains(t, b.String(), "Best cell: proposed\n  Use tools.\\x1b[2J\n  \n  Be brief.\n")
	require.Contains(t, b.String(), "  Be brief.\n  … 12 more lines\n")
	require.NotContains(t, b.String(), "other")
	r.Summary.Tune.Best = "given"
	b.Reset()
	require.NoError(t, r.Write(&b, report.Options{Width: 80}))
	require.NotContains(t, b.String(), "Use tools")
}
