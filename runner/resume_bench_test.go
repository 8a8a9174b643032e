package runner_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"waza/runner"
	"waza/runner/record"
)

// BenchmarkResume resumes a run of 100,000 trials that was killed before its last. It measures
// the time until the first new trial starts.
func BenchmarkResume(b *testing.B) {
	state := b.TempDir()
	r, err := runner.New(runner.Options{StateDir: state})
	if err != nil {
		b.Fatal(err)
	}
	suite := benchLoad(b, r, benchSuite(100, 1000, runtime.NumCPU(), 0))
	plan, err := r.Planner().Plan(b.Context(), suite, record.Request{})
	if err != nil {
		b.Fatal(err)
	}
	first, err := r.Start(plan)
	if err != nil {
		b.Fatal(err)
	}
	<-first.Done()
	path := filepath.Join(state, "runs", first.ID(), "journal.jsonl")
	size := killedBeforeLastTrial(b, path)
	var took time.Duration
	for b.Loop() {
		start := time.Now()
		plan, err := r.Planner().Plan(b.Context(), suite, first.Record().Asked)
		if err != nil {
			b.Fatal(err)
		}
		run, err := r.Resume(b.Context(), first.ID(), plan)
		if err != nil {
			b.Fatal(err)
		}
		took += untilTrial(b, run).Sub(start)
		<-run.Done()
		if p, _ := run.Progress(); p.Trials.Passed != 100_000 || p.Summary.Trials.Passed != 100_000 {
			b.Fatal(p)
		}
		if err := os.Truncate(path, size); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s-to-first-trial")
	b.ReportMetric(0, "ns/op")
}

// killedBeforeLastTrial shortens a journal, and returns its new size.
func killedBeforeLastTrial(b *testing.B, path string) int64 {
	lines, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	at := bytes.LastIndex(lines, []byte(`"type":"trial_complete"`))
	size := int64(bytes.LastIndexByte(lines[:at], '\n') + 1)
	if err := os.Truncate(path, size); err != nil {
		b.Fatal(err)
	}
	return size
}

// untilTrial returns the time when the first trial of this process was started.
func untilTrial(b *testing.B, run *runner.Run) time.Time {
	sub := run.Subscribe(run.First())
	for {
		events, err := sub.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range events {
			if e.Type == record.TrialStart {
				return e.Time
			}
		}
	}
}
