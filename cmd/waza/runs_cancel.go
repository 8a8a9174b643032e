package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/progress"
	"waza/runner"
	"waza/runner/record"
)

func runsCancelCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "end runs, whichever process carries them out", ArgsUsage: "RUN…",
		Description: `What runs is killed, what was not started is not. The command waits until the runs
are over, and tells what became of them. latest means the newest run.

Ctrl-C ends the waiting; what was asked for is done all the same.

Examples:
  waza runs cancel latest
  waza runs cancel RUN --finish-running    let the trials that run end

Exit codes:
  0    none of the runs goes on any more; also where one was over already
  2    wrong usage, or no such run
  3    a process did not answer within 5 s, or a run was not over in time
  130  interrupted`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "finish-running", Usage: "start no more trials, but let those that run end"},
			&cli.DurationFlag{Name: "wait", Usage: "wait at most a `TIME` such as 90s until the runs are over; 0 does not wait", DefaultText: "1m, or with --finish-running as long as it takes"},
			flags.JSON("print what became of the runs as JSON"),
		},
		Action: e.do(cancelRuns),
	}
}

// defaultCancelWait is how long a run that was cancelled may take to end: its
// processes are killed at once, hooks that clean up have some seconds.
const defaultCancelWait = time.Minute

// ended is what became of a run that was to end.
type ended struct {
	RunID string `json:"runId"`
	// Was is its status before, Status afterwards.
	Was    record.Status `json:"was"`
	Status record.Status `json:"status"`
	Tasks  record.Counts `json:"tasks"`
	Trials record.Counts `json:"trials"`
	Error  string        `json:"error,omitempty"`
	err    error
}

func cancelRuns(e *env, c *cli.Context) error {
	if c.IsSet("wait") && c.Duration("wait") < 0 {
		return exit.Usagef("0 does not wait", "--wait: %s is no time", c.Duration("wait"))
	}
	rn, runs, err := someRuns(e, c)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	end := canceller{runner: rn, gently: c.Bool("finish-running"), wait: defaultCancelWait, bounded: true}
	if c.IsSet("wait") {
		end.wait = c.Duration("wait")
	} else if end.gently {
		end.bounded = false
	}
	list := make([]ended, len(runs))
	var all sync.WaitGroup
	for i, h := range runs { // at once: each may take its time
		all.Go(func() { list[i] = end.end(ctx, h) })
	}
	all.Wait()
	return printEnded(e, list, c.Bool("json"), ctx.Err() != nil && c.Context.Err() == nil)
}

// canceller ends runs. It is safe for concurrent use.
type canceller struct {
	runner  *runner.Runner
	gently  bool
	wait    time.Duration
	bounded bool // whether wait holds
}

func (o *canceller) end(ctx context.Context, h record.Handle) ended {
	e := ended{RunID: h.ID()}
	if e.err = o.try(ctx, h, &e); e.err != nil {
		e.Error = e.err.Error()
	}
	return e
}

func (o *canceller) try(ctx context.Context, h record.Handle, e *ended) error {
	before, err := h.Progress()
	if err != nil {
		return err
	}
	e.Was, e.Status, e.Tasks, e.Trials = before.Status, before.Status, before.Tasks, before.Trials
	if before.Status != record.StatusRunning {
		return nil
	}
	ask := o.runner.Cancel
	if o.gently {
		ask = o.runner.Stop
	}
	if e.Status, err = ask(ctx, e.RunID); err != nil {
		return err
	}
	late := fmt.Errorf("run %s has not ended within %s", e.RunID, o.wait)
	if o.bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.wait, late)
		defer cancel()
	}
	err = o.runner.Wait(ctx, e.RunID)
	if errors.Is(err, late) && o.wait == 0 {
		err = nil // nobody wanted to wait
	}
	after, perr := h.Progress()
	if perr != nil {
		return errors.Join(err, perr)
	}
	if e.Tasks, e.Trials = after.Tasks, after.Trials; after.Status != record.StatusRunning {
		e.Status = after.Status
	}
	return err
}

func printEnded(e *env, list []ended, json, interrupted bool) error {
	var failed error
	for i := range list {
		one := &list[i]
		failed = errors.Join(failed, one.err)
		if !json && one.err == nil {
			fmt.Fprintln(e.stdout, one.text())
		}
	}
	if json {
		if err := e.stdout.JSON(map[string]any{"runs": list}); err != nil {
			return err
		}
	}
	if interrupted {
		return exit.New(exit.Interrupted, errors.New("interrupted; waza runs tells which runs go on"), "")
	}
	return failed
}

// text tells what became of a run.
func (e *ended) text() string {
	trials := progress.Counts(e.Trials, "trial", "trials")
	switch {
	case e.Was == record.StatusInterrupted:
		return fmt.Sprintf("run %s was interrupted, its process ended before it did: %s", e.RunID, trials)
	case e.Was != record.StatusRunning:
		return fmt.Sprintf("run %s was over already: %s, %s", e.RunID, e.Was, trials)
	case e.Status == record.StatusRunning:
		return fmt.Sprintf("run %s starts no more trials: %s so far", e.RunID, trials)
	}
	return fmt.Sprintf("run %s: %s, %s", e.RunID, e.Status, trials)
}
