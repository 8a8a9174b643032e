package runner

import "context"

// Starts are the runs that a [Runner] starts or resumes from a moment on, in that
// order. It belongs to one goroutine. It needs no end, and holds the runs that Next
// has yet to return.
type Starts struct{ next *start }

// start is a link of the list of all starts. A reader holds the link it waits for, so
// that nobody keeps a list of readers, and what all of them have read is garbage.
type start struct {
	ready chan struct{} // closed when the fields below are set
	run   *Run
	next  *start
}

func newStart() *start { return &start{ready: make(chan struct{})} }

// Starts returns the runs that this process starts or resumes from now on. Each is
// there before Start or Resume returns it. Subscribe from [Run.First] to get all
// events of a run: a run loses none while it waits in the list.
func (r *Runner) Starts() *Starts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Starts{next: r.starts}
}

// Next returns the next run, waiting for it if need be. The error is the cause of
// ctx, and comes after all runs that have started before ctx ended.
func (s *Starts) Next(ctx context.Context) (*Run, error) {
	select {
	case <-s.next.ready:
	case <-ctx.Done():
		select {
		case <-s.next.ready: // both are, and the run comes first
		default:
			return nil, context.Cause(ctx)
		}
	}
	run := s.next.run
	s.next = s.next.next
	return run, nil
}

// launch adds a run to the list of starts and begins it.
func launch(r *Runner, run *Run) {
	r.mu.Lock()
	added := r.starts
	added.run, added.next = run, newStart()
	r.starts = added.next
	r.mu.Unlock()
	close(added.ready)
	go carryOut(run)
}
