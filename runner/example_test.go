package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

// This example prepares a suite, starts it and follows it to its end.
func Example() {
	ctx := context.Background()
	state, _ := os.MkdirTemp("", "waza")
	defer os.RemoveAll(state)
	r, err := runner.New(runner.Options{StateDir: state})
	if err != nil {
		panic(err)
	}
	defer r.Close(ctx)
	p, err := r.Planner().Prepare(ctx, "../testdata/suites/hello/eval.yaml", record.Request{}, plan.PrepareOptions{})
	if err != nil || p.Plan == nil {
		panic(fmt.Sprint(err, p.All()))
	}
	run, err := r.Start(p.Plan)
	if err != nil {
		panic(err)
	}
	for events := run.Subscribe(1); ; {
		batch, err := events.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		for _, e := range batch {
			if e.Type == record.TrialComplete {
				fmt.Println(e.TaskID, e.TrialNum, e.Verdict)
			}
		}
	}
	progress, _ := run.Progress()
	fmt.Println(progress.Status, progress.Tasks.Passed, "of", progress.Tasks.Total)
	// Unordered output:
	// greet 1 passed
	// greet 2 passed
	// letter 1 passed
	// letter 2 passed
	// sum 1 passed
	// sum 2 passed
	// completed 3 of 3
}
