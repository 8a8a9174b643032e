package runs

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
	"waza/cmd/waza/state"
	"waza/runner/record"
)

func (o Options) cancelCommand() *cli.Command {
	return &cli.Command{
		Name: "cancel", Usage: "end runs, in any process", ArgsUsage: "RUN…",
		Description: `Running trials are killed; pending ones are skipped. The command waits until the runs
are over, and prints how they ended. latest means the newest run of this
project.

Ctrl-C ends the waiting; the runs are still cancelled.

Examples:
  waza runs cancel latest
  waza runs cancel RUN --finish-running    let running trials finish

Exit codes:
  0    all of the runs are over; also if one was over already
  2    wrong usage, or no such run
  3    a process did not answer within 5 s, or a run was not over in time
  130  interrupted`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "finish-running", Usage: "start no more trials, but let running ones finish"},
			flags.Time("wait", "", "wait at most a `TIME` such as 90s until the runs are over; 0 does not wait",
				"1m; no limit with --finish-running"),
			flags.JSON("print how the runs ended as JSON"),
		},
		Action: o.cancel,
	}
}

// defaultCancelWait limits how long a cancelled run can take to end. Its processes are killed at
// once; hooks that clean up have a few seconds.
const defaultCancelWait = time.Minute

// ended is the outcome for a run that was cancelled.
type ended struct {
	RunID string `json:"runId"`
	// Was is the status before, Status the one afterwards.
	Was    record.Status `json:"was"`
	Status record.Status `json:"status"`
	Tasks  record.Counts `json:"tasks"`
	Trials record.Counts `json:"trials"`
	Error  string        `json:"error,omitempty"`
	err    error
}

func (o Options) cancel(c *cli.Context) error {
	if c.IsSet("wait") && flags.TimeOf(c, "wait") < 0 {
		return exit.Usagef("0 does not wait", "--wait must not be negative, got %s", flags.TimeOf(c, "wait"))
	}
	rn, runs, err := o.someRuns(c)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	end := canceller{runner: rn, gently: c.Bool("finish-running"), wait: defaultCancelWait, bounded: true}
	if c.IsSet("wait") {
		end.wait = flags.TimeOf(c, "wait")
	} else if end.gently {
		end.bounded = false
	}
	list := make([]ended, len(runs))
	var all sync.WaitGroup
	for i, h := range runs { // in parallel, because each can take a while
		all.Go(func() { list[i] = end.end(ctx, h) })
	}
	all.Wait()
	return o.printEnded(list, c.Bool("json"), ctx.Err() != nil && c.Context.Err() == nil)
}

// canceller ends runs. It is safe for concurrent use.
type canceller struct {
	runner  *state.Opened
	gently  bool
	wait    time.Duration
	bounded bool // whether wait applies
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
		err = nil // the user asked not to wait
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

func (o Options) printEnded(list []ended, json, interrupted bool) error {
	var failed error
	for i := range list {
		one := &list[i]
		failed = errors.Join(failed, one.err)
		if !json && one.err == nil {
			fmt.Fprintln(o.Stdout, one.text())
		}
	}
	if json {
		if err := o.Stdout.JSON(map[string]any{"runs": list}); err != nil {
			return err
		}
	}
	if interrupted {
		return exit.New(exit.Interrupted, errors.New("interrupted; waza runs lists the runs that are still active"), "")
	}
	return failed
}

// text describes the outcome in a line.
func (e *ended) text() string {
	trials := progress.Counts(e.Trials, "trial", "trials")
	switch {
	case e.Was == record.StatusInterrupted:
		return fmt.Sprintf("run %s was interrupted because its process ended: %s", e.RunID, trials)
	case e.Was != record.StatusRunning:
		return fmt.Sprintf("run %s was over already: %s, %s", e.RunID, e.Was, trials)
	case e.Status == record.StatusRunning:
		return fmt.Sprintf("run %s starts no more trials: %s so far", e.RunID, trials)
	}
	return fmt.Sprintf("run %s: %s, %s", e.RunID, e.Status, trials)
}
