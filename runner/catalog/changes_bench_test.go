package catalog_test

import (
	"slices"
	"testing"
	"time"

	"waza/eval"
	"waza/runner"
	"waza/runner/record"
)

// BenchmarkChanges measures the time from the start of a run by one runner to its report by
// another.
func BenchmarkChanges(b *testing.B) {
	dir := b.TempDir()
	owner, err := runner.New(runner.Options{StateDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	other, err := runner.New(runner.Options{StateDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	suite, _, err := eval.Load("../../testdata/suites/hello/eval.yaml", eval.Options{Vocabulary: owner.Planner().Vocabulary()})
	if err != nil {
		b.Fatal(err)
	}
	c := other.Catalog().Watch(b.Context())
	var took []time.Duration
	for b.Loop() {
		plan, err := owner.Planner().Plan(b.Context(), suite, record.Request{})
		if err != nil {
			b.Fatal(err)
		}
		run, err := owner.Start(plan)
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		for found := false; !found; {
			list, err := c.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			for _, change := range list {
				found = found || change.RunID == run.ID()
			}
		}
		took = append(took, time.Since(begin))
		<-run.Done()
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-p50")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-p99")
	b.ReportMetric(0, "ns/op")
}
