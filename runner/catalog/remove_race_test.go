package catalog_test

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// Reading a run while it was removed returned internal errors. A reader gets the data, or an
// error that the run does not exist.
func TestAttackRemoveBesideReaders(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	suite := runnertest.Load(t, r, runnertest.TwoTasks)
	for range 4 {
		plan, err := r.Planner().Plan(t.Context(), suite, record.Request{})
		require.NoError(t, err)
		live, err := r.Start(plan)
		require.NoError(t, err)
		<-live.Done()
		id := live.ID()
		read := map[string]func(h record.Handle) error{
			"progress": func(h record.Handle) error { _, err := h.Progress(); return err },
			"results":  func(h record.Handle) error { _, err := h.Results(); return err },
			"damage":   func(h record.Handle) error { _, err := h.Damage(); return err },
			"result":   func(h record.Handle) error { return h.WriteResult(io.Discard) },
			"trials": func(h record.Handle) error {
				return h.Trials(func(int, *record.Trial) error { return nil })
			},
			"events": func(h record.Handle) error {
				for sub := h.Subscribe(1); ; {
					if _, err := sub.Next(t.Context()); err != nil {
						if errors.Is(err, io.EOF) {
							return nil
						}
						return err
					}
				}
			},
			"blobs": func(h record.Handle) error {
				b, err := h.Blobs()
				if err == nil {
					err = b.Close()
				}
				return err
			},
			"questions": func(record.Handle) error { _, err := r.Amender().Questions(id); return err },
			"cancel":    func(record.Handle) error { _, err := r.Cancel(t.Context(), id); return err },
			"archive":   func(record.Handle) error { return r.Catalog().Archive(io.Discard, id) },
			"grade": func(record.Handle) error {
				_, err := r.Amender().Grade(t.Context(), id, suite, regrade.GradeOptions{})
				if busy := (*record.BusyError)(nil); errors.As(err, &busy) && !busy.Running {
					return nil
				}
				return err
			},
			"list": func(record.Handle) error { _, err := r.Catalog().List(0); return err },
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
				if !errors.Is(err, record.ErrRunNotFound) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		for range read {
			<-ready
		}
		for {
			_, err := r.Catalog().Remove(id)
			if busy := (*record.BusyError)(nil); errors.As(err, &busy) && !busy.Running {
				continue // the run is being graded
			}
			require.NoError(t, err, fmt.Sprint(id))
			break
		}
		all.Wait()
	}
}
