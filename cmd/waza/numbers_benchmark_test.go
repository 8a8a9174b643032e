//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/figure"
	"waza/runner/record"
)

// benchmarkServer counts 1000 tokens read and, of request n, 10n written. Its answer has two
// parts, so that the speed of writing can be measured.
func benchmarkServer(t *testing.T) string {
	n := make(chan int, 1)
	n <- 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		at := <-n + 1
		n <- at
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}`+"\n\n")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`+"\n\n")
		fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n",
			10*at, 1000+10*at)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

// The measurements of a benchmark are the same in JSON, tables, Markdown, the page and
// comparisons, and equal those of its trials.
func TestBenchmarkNumbersAgree(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	suite := filepath.Join(dir, "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(`name: speed
kind: benchmark
config:
  executor: openai
  base_url: `+benchmarkServer(t)+`
  models: [m-1, m-2]
  matrix: {context_tokens: [0, 500, 9000]}
  context_windows: {m-1: 8000}
  prices: {m-1: {input: 1, output: 10}, m-2: {input: 2, output: 20}}
  params: {max_tokens: 100}
  trials_per_task: 3
tasks: [{id: hello, prompt: Say hello.}]
`), 0o600))
	waza := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("waza", args...)
		cmd.Env = append(os.Environ(), "WAZA_STATE="+state)
		out, err := cmd.Output()
		require.NoError(t, err, "%v: %s", args, out)
		return string(out)
	}
	table := waza("run", suite)
	require.Contains(t, table, "Skipped m-1,context_tokens=9000: a context of 9000 tokens and an answer of 100 "+
		"leave no room in the window of m-1, which is 8000 tokens\n")
	entries, err := os.ReadDir(filepath.Join(state, "runs"))
	require.NoError(t, err)
	id := ""
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "20") {
			id = e.Name()
		}
	}
	var res struct {
		Summary record.Summary
		Tasks   []struct {
			Cell   record.Cell
			Trials []record.Trial
		}
	}
	require.NoError(t, json.Unmarshal([]byte(waza("runs", "show", id, "--json")), &res))
	require.Len(t, res.Tasks, 5)
	page := waza("runs", "export", id, "--format", "html")
	_, data, _ := strings.Cut(page, `<script type="application/json" id="run">`)
	data, _, _ = strings.Cut(data, "</script>")
	var shown struct {
		Run struct {
			Summary   record.Summary
			Benchmark record.BenchmarkRef
		}
	}
	require.NoError(t, json.Unmarshal([]byte(data), &shown))
	var whole object
	require.NoError(t, json.Unmarshal([]byte(data), &whole))
	requireOneDefinition(t, whole["run"].(object))
	require.Equal(t, res.Summary.Groups, shown.Run.Summary.Groups)
	require.Len(t, shown.Run.Benchmark.Skipped, 1)
	markdown := waza("runs", "export", id, "--format", "markdown")
	shownTable := waza("runs", "show", id)
	for i, g := range res.Summary.Groups {
		var first, speed, written, cost float64
		var firsts, totals []float64
		for _, trial := range res.Tasks[i].Trials {
			first += trial.Speed.FirstTokenMS / 3
			firsts, totals = append(firsts, trial.Speed.FirstTokenMS), append(totals, float64(trial.ExecutorMS))
			speed += trial.Speed.TokensPerSecond / 3
			written += float64(trial.Usage.OutputTokens) / 3
			cost += trial.Usage.CostUSD / 3
		}
		b := g.Benchmark
		require.Equal(t, res.Tasks[i].Cell.Name, g.Group)
		require.InEpsilon(t, first, b.FirstTokenMS.Mean, 1e-9)
		require.InEpsilon(t, median(firsts), b.FirstTokenMS.Median, 1e-9)
		require.InEpsilon(t, percentile(firsts, 0.9), b.FirstTokenMS.P90, 1e-9)
		require.InEpsilon(t, percentile(firsts, 0.95), b.FirstTokenMS.P95, 1e-9)
		if slices.Min(totals) > 0 { // an answer within a millisecond has no measured time
			require.InEpsilon(t, median(totals), b.TotalMS.Median, 1e-9)
			require.InEpsilon(t, percentile(totals, 0.95), b.TotalMS.P95, 1e-9)
		}
		require.InEpsilon(t, speed, b.TokensPerSecond.Mean, 1e-9)
		require.InEpsilon(t, written, b.OutputTokens.Mean, 1e-9)
		require.InDelta(t, 20+30*float64(i), b.OutputTokens.Mean, 1e-9) // of (10 + 20 + 30) / 3 the first
		require.InDelta(t, 1000, b.InputTokens.Mean, 0)
		require.InEpsilon(t, cost, b.CostUSD.Mean, 1e-9)
		price := 1.0
		if g.Cell.Model == "m-2" {
			price = 2
		}
		require.InDelta(t, price*(1000+10*(20+30*float64(i)))/1e6, b.CostUSD.Mean, 1e-12)
		require.True(t, b.FirstTokenMS.MeanInterval.Low < first && first < b.FirstTokenMS.MeanInterval.High)
		for name, text := range map[string]string{"run": table, "show": shownTable, "markdown": markdown} {
			row := ""
			_, speed, _ := strings.Cut(text, "Speed")
			for line := range strings.Lines(speed) {
				clean := strings.NewReplacer("|", " ", "`", "").Replace(line)
				context := figure.Tokens(float64(shown.Run.Benchmark.ContextOf(g.Cell)))
				if f := strings.Fields(clean); len(f) > 2 && f[0] == g.Cell.Model && f[1] == context {
					row += clean
				}
			}
			for _, want := range []string{
				figure.Number(b.FirstTokenMS.Mean) + " ms",
				figure.NumberInterval(b.FirstTokenMS.MeanInterval.Low, b.FirstTokenMS.MeanInterval.High) + " ms",
				figure.Number(b.TokensPerSecond.Mean), figure.NumberInterval(b.TokensPerSecond.MeanInterval.Low, b.TokensPerSecond.MeanInterval.High),
				figure.Tokens(b.InputTokens.Mean), figure.Tokens(b.OutputTokens.Mean), figure.Cost(b.CostUSD.Mean),
				figure.Number(b.FirstTokenMS.Median) + " ms", figure.Number(b.FirstTokenMS.P90) + " ms", figure.Number(b.FirstTokenMS.P95) + " ms",
			} {
				require.Contains(t, row, want, "%s\n%s", name, text)
			}
		}
	}
	compared := waza("compare", id)
	require.Contains(t, compared, "Mean first token")
	require.Contains(t, compared, "Mean tokens/s")
	require.Regexp(t, `Mean tokens/trial +1020 → 1050 +×1\.03`, compared)
}
