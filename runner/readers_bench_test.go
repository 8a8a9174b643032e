package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/compare"
	"waza/runner/executor"
	"waza/runner/history"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// talkative is an agent that uses 20 tools in each trial, and fails one trial in three.
func talkative(_ context.Context, t *executor.Trial) (string, error) {
	for i := range 20 {
		t.Transcript.ToolCall(record.ToolCall{
			Name: "bash", Arguments: []byte(`{"command":"go test ./..."}`),
			Result: fmt.Appendf(nil, "%q", strings.Repeat(fmt.Sprintf("ok %d\n", i), 20)),
		})
	}
	if t.Num%3 == 0 {
		return "bad", nil
	}
	return "good", nil
}

// recordTalkative records runs of 10 tasks with the given trials each, graded by 3 graders. With
// cache, each run reuses the trials of the first.
func recordTalkative(b *testing.B, runs, trials int, cache bool) (*runner.Runner, []record.Handle) {
	r, err := runner.New(runner.Options{StateDir: b.TempDir(), Executors: executor.NewRegistry(executor.Kind{
		Kind:         eval.Kind{Name: "agent"},
		Capabilities: func(executor.Settings) executor.Capabilities { return executor.Capabilities{Skills: true} },
		Open: func(context.Context, executor.Settings) (executor.Executor, error) {
			return runnertest.Agent(talkative), nil
		},
	})})
	require.NoError(b, err)
	var text strings.Builder
	fmt.Fprintf(&text, "name: talk\nconfig: {executor: agent, trials_per_task: %d, parallel: true, workers: 4}\ngraders:\n", trials)
	for _, name := range []string{"one", "two", "three"} {
		fmt.Fprintf(&text, "  - {name: %s, type: text, config: {contains: [good], not_contains: [awful, terrible]}}\n", name)
	}
	text.WriteString("tasks:\n")
	for i := range 10 {
		fmt.Fprintf(&text, "  - {id: t%d, prompt: x}\n", i)
	}
	file := filepath.Join(b.TempDir(), "eval.yaml")
	require.NoError(b, os.WriteFile(file, []byte(text.String()), 0o600))
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(b, err)
	require.False(b, ds.HasErrors(), ds)
	var handles []record.Handle
	for range runs {
		plan, err := r.Planner().Plan(b.Context(), suite, record.Request{Cache: cache})
		require.NoError(b, err)
		run, err := r.Start(plan)
		require.NoError(b, err)
		<-run.Done()
		h, err := r.Catalog().Run(run.ID())
		require.NoError(b, err)
		handles = append(handles, h)
	}
	return r, handles
}

// withPeak measures time and memory of do.
func withPeak(b *testing.B, do func() error) {
	debug.FreeOSMemory()
	before := resetPeak()
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, do())
	}
	b.ReportMetric(float64(peakRSS()-before)/(1<<20), "MiB-peak")
}

// BenchmarkCompareRuns compares two runs of 10,000 trials, recorded and as files.
func BenchmarkCompareRuns(b *testing.B) {
	_, runs := recordTalkative(b, 2, 1000, false)
	b.Run("recorded", func(b *testing.B) {
		withPeak(b, func() error {
			_, err := compare.Compare(b.Context(), []compare.Source{compare.FromRun(runs[0]), compare.FromRun(runs[1])}, compare.Options{})
			return err
		})
	})
	var files []string
	for i, h := range runs {
		path := filepath.Join(b.TempDir(), fmt.Sprint(i))
		f, err := os.Create(path)
		require.NoError(b, err)
		require.NoError(b, h.WriteResult(f))
		require.NoError(b, f.Close())
		files = append(files, path)
	}
	b.Run("files", func(b *testing.B) {
		withPeak(b, func() error {
			var sources []compare.Source
			for _, path := range files {
				s, err := compare.FromFile(path, "")
				if err != nil {
					return err
				}
				sources = append(sources, s)
			}
			_, err := compare.Compare(b.Context(), sources, compare.Options{})
			return err
		})
	})
}

// BenchmarkHistoryRuns reads the history of one task in 20 runs of 1,000 trials each that reused
// earlier trials. It checks each trial, and reads the transcripts of one task.
func BenchmarkHistoryRuns(b *testing.B) {
	r, _ := recordTalkative(b, 20, 100, true)
	withPeak(b, func() error {
		_, err := history.Read(b.Context(), r.Catalog(), history.Options{Limit: 20, Tasks: []string{"t0"}})
		return err
	})
}
