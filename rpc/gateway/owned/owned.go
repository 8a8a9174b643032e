// Package owned keeps the runs of a server from being lost with its process. Call
// [Keep] when the server starts, then [Resume], which takes up the runs that an earlier
// server of the state directory was killed or stopped in.
package owned

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"waza/eval/decode"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

// Store remembers ids of runs. It is safe for concurrent use.
type Store interface {
	Own(ctx context.Context, runID string) error
	Disown(ctx context.Context, runID string) error
	Owned(ctx context.Context) ([]string, error)
}

// Keep remembers, from now until ctx ends, each run that r starts or resumes, and
// forgets it when it has ended. It does not forget runs that are cancelled because r is
// closed: the next server takes them up. wait returns when ctx and all these runs have
// ended.
func Keep(ctx context.Context, r *runner.Runner, s Store, log *slog.Logger) (wait func()) {
	starts := r.Starts()
	var following sync.WaitGroup
	following.Go(func() {
		for {
			run, err := starts.Next(ctx)
			if err != nil {
				return
			}
			following.Go(func() { keep(context.WithoutCancel(ctx), run, r, s, log) })
		}
	})
	return following.Wait
}

// keep remembers a run until it has ended.
func keep(ctx context.Context, run *runner.Run, r *runner.Runner, s Store, log *slog.Logger) {
	if err := s.Own(ctx, run.ID()); err != nil {
		log.Error("run is not taken up again should this server end before it", "run", run.ID(), "error", err)
		return
	}
	<-run.Done()
	select {
	case <-r.Closing():
		if run.Status() == record.StatusCancelled {
			return
		}
	default:
	}
	forget(ctx, run.ID(), s, log)
}

func forget(ctx context.Context, id string, s Store, log *slog.Logger) {
	if err := s.Disown(ctx, id); err != nil {
		log.Error("run is not forgotten", "run", id, "error", err)
	}
}

// Resume takes up the runs that s remembers. One that has nothing left to do, belongs to
// another process now, or cannot be run any more is forgotten; the log says why. The
// error is that of reading from s, or the cause of ctx.
func Resume(ctx context.Context, r *runner.Runner, s Store, log *slog.Logger) error {
	ids, err := s.Owned(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.Live(id) != nil {
			continue
		}
		if err := resume(ctx, r, id); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			log.Warn("run of an earlier server is not taken up again", "run", id, "error", err)
			forget(ctx, id, s, log)
			continue
		}
		log.Info("run of an earlier server is taken up again", "run", id)
	}
	return nil
}

func resume(ctx context.Context, r *runner.Runner, id string) error {
	h, err := r.Catalog().Run(id)
	if err != nil {
		return err
	}
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	if progress.Status == record.StatusCompleted {
		return &runner.NothingLeftError{RunID: id, Status: progress.Status}
	}
	rec := h.Record()
	p, err := r.Planner().Prepare(ctx, rec.Suite.Path, rec.Asked, plan.Reading{})
	if err != nil {
		return err
	}
	if all := p.All(); all.HasErrors() {
		return errors.New(firstError(all))
	}
	_, err = r.Resume(ctx, id, p.Plan)
	return err
}

// firstError is the first finding that keeps a suite from being run.
func firstError(all decode.Diagnostics) string {
	for _, d := range all {
		if d.Severity == decode.Error {
			return d.String()
		}
	}
	return ""
}
