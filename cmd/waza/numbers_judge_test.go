//go:build unix

package main_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/runner/figure"
	"waza/runner/runnertest"
)

// The numbers of a run of the kind judge follow from its trials and comparisons, and are
// the same wherever they are shown.
func TestJudgeNumbersAgree(t *testing.T) {
	t.Parallel()
	jury := &runnertest.Jury{Answers: func(model, prompt string) string {
		return strings.Fields(prompt)[map[string]int{"m-1": 0, "m-2": 1}[model]]
	}}
	suite := runnertest.JudgeSuite(jury.Serve(t), "  models: [m-1, m-2]\n  trials_per_task: 2", `
  - {id: a, prompt: perfect poor}
  - {id: b, prompt: good perfect}
  - {id: c, prompt: fair fair}
  - {id: d, prompt: good fair}`)
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(suite)).Files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600))
	}
	n := &numbersDaemon{state: t.TempDir(), suite: filepath.Join(dir, "eval.yaml")}
	n.daemon = startDaemonWith(t, []string{"WAZA_STATE=" + n.state}, "--metrics", "127.0.0.1:0")
	n.metrics = n.address(t)
	var started struct{ RunID string }
	n.call(t, "eval.run", map[string]any{"path": n.suite}, &started)
	n.run = started.RunID
	for readMessage(t, n.out).Method != "eval.complete" {
		continue
	}
	require.Eventually(t, func() bool { return scrape(t, n.metrics, "")[`waza_runs_total{status="completed"}`] == 1 }, patience,
		10*time.Millisecond)
	l := n.result(t)
	recountJudged(t, l)
	samples := scrape(t, n.metrics, "")
	for name, direction := range map[string]string{"inputTokens": "input", "outputTokens": "output"} {
		judges, _ := l.number("summary/usageByRole/judges/" + name)
		require.InDelta(t, judges, samples[fmt.Sprintf("waza_tokens_total{by=%q,direction=%q}", "judge", direction)], 0)
	}
	showJudged(t, l, n.waza(t, "runs", "show", n.run), "  ")
	showJudged(t, l, n.export(t, "markdown"), " | ")
	require.NoError(t, n.in.Close())
	require.Zero(t, n.exitCode(t))
}

// recountJudged counts again what the summary says.
func recountJudged(t *testing.T, l *ledger) {
	t.Helper()
	const at = "summary/judged"
	var quality [5]float64
	spent, tasks, sum := 60., 0., 0. // the report
	for i := range l.len("tasks") {
		score := 0.
		for j := range l.len(fmt.Sprintf("tasks/%d/trials", i)) {
			trial := fmt.Sprintf("tasks/%d/trials/%d", i, j)
			s, _ := l.number(trial + "/graders/0/score")
			quality[int(math.Floor(4*s+0.5))]++
			score += s / 2
			in, _ := l.number(trial + "/spent/judges/inputTokens")
			spent += in
		}
		tasks, sum = tasks+1, sum+score
	}
	for i, want := range quality {
		got, _ := l.number(fmt.Sprintf("%s/quality/%d", at, i))
		require.InDelta(t, want, got, 0)
	}
	overall, _ := l.number(at + "/report/overallScore")
	require.InDelta(t, 100*sum/tasks, overall, 0.05)
	pair, points := at+"/comparisons/0", 0.
	wins := map[string]float64{}
	for i := range l.len(pair + "/cases") {
		c := fmt.Sprintf("%s/cases/%d", pair, i)
		winner := l.text(c + "/winner")
		wins[winner]++
		points += map[string]float64{"model_a": 1, "tie": 0.5}[winner]
		in, _ := l.number(c + "/usage/inputTokens")
		spent += in
	}
	for name, winner := range map[string]string{"wins": "model_a", "losses": "model_b", "ties": "tie"} {
		got, _ := l.number(pair + "/" + name)
		require.InDelta(t, wins[winner], got, 0)
	}
	rate, _ := l.number(pair + "/winRate")
	require.InDelta(t, points/float64(l.len(pair+"/cases")), rate, 1e-9)
	judges, _ := l.number("summary/usageByRole/judges/inputTokens")
	require.InDelta(t, spent, judges, 0)
}

// showJudged holds a text with tables against the summary.
func showJudged(t *testing.T, l *ledger, text, gap string) {
	t.Helper()
	const at = "summary/judged"
	fields := strings.Join(strings.Fields(text), " ")
	has := func(cells ...string) {
		t.Helper()
		require.Contains(t, fields, strings.Join(strings.Fields(strings.Join(cells, gap)), " "))
	}
	number := func(path string) float64 { n, _ := l.number(at + "/" + path); return n }
	has(fmt.Sprintf("Judged: grade %s, %v of 100", l.text(at+"/report/overallGrade"), number("report/overallScore")))
	cells := []string{"Cases"}
	for q := 4; q >= 0; q-- {
		cells = append(cells, whole(number(fmt.Sprintf("quality/%d", q))))
	}
	has(append(cells, whole(number("cases")-number("judged")))...)
	const pair = "comparisons/0/"
	has(whole(number(pair+"wins")), whole(number(pair+"losses")), whole(number(pair+"ties")), percent(number(pair+"winRate")),
		figure.PercentInterval(number(pair+"winRateInterval/low"), number(pair+"winRateInterval/high")))
	for i := range l.len(at + "/comparisons/0/cases") {
		require.Contains(t, fields, percent(number(fmt.Sprintf("%scases/%d/confidence", pair, i))))
	}
}
