package runner_test

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
)

// A run that was removed while it was read gave internal errors: a reader gets what
// there was, or learns that there is no such run.
func TestAttackRemoveBesideReaders(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	suite := load(t, r, twoTasks)
	for range 4 {
		plan, err := r.Planner().Plan(t.Context(), suite, runner.Request{})
		require.NoError(t, err)
		live, err := r.Start(plan)
		require.NoError(t, err)
		<-live.Done()
		id := live.ID()
		read := map[string]func(h runner.Handle) error{
			"progress": func(h runner.Handle) error { _, err := h.Progress(); return err },
			"results":  func(h runner.Handle) error { _, err := h.Results(); return err },
			"damage":   func(h runner.Handle) error { _, err := h.Damage(); return err },
			"result":   func(h runner.Handle) error { return h.WriteResult(io.Discard) },
			"trials": func(h runner.Handle) error {
				return h.Trials(func(int, *runner.TrialResult) error { return nil })
			},
			"events": func(h runner.Handle) error {
				for sub := h.Subscribe(1); ; {
					if _, err := sub.Next(t.Context()); err != nil {
						if errors.Is(err, io.EOF) {
							return nil
						}
						return err
					}
				}
			},
			"blobs": func(h runner.Handle) error {
				b, err := h.Blobs()
				if err == nil {
					err = b.Close()
				}
				return err
			},
			"questions": func(runner.Handle) error { _, err := r.Amender().Questions(id); return err },
			"cancel":    func(runner.Handle) error { _, err := r.Cancel(t.Context(), id); return err },
			"archive":   func(runner.Handle) error { return r.Catalog().Archive(io.Discard, id) },
			"grade": func(runner.Handle) error {
				_, err := r.Amender().Grade(t.Context(), id, suite, runner.GradeOptions{})
				if busy := (*runner.BusyError)(nil); errors.As(err, &busy) && !busy.GoesOn {
					return nil
				}
				return err
			},
			"list": func(runner.Handle) error { _, err := r.Catalog().List(0); return err },
		}
		var all sync.WaitGroup
		ready := make(chan struct{})
		for name, do := range read {
			all.Go(func() {
				h, err := r.Catalog().Run(id)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				for range 3 {
					err = do(h)
				}
				ready <- struct{}{}
				for err == nil {
					if h, err = r.Catalog().Run(id); err == nil {
						err = do(h)
					}
				}
				if !errors.Is(err, runner.ErrRunNotFound) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		for range read {
			<-ready
		}
		for {
			_, err := r.Catalog().Remove(id)
			if busy := (*runner.BusyError)(nil); errors.As(err, &busy) && !busy.GoesOn {
				continue // it is being graded
			}
			require.NoError(t, err, fmt.Sprint(id))
			break
		}
		all.Wait()
	}
}
