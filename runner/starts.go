package runner

import "context"

// Starts lists the runs that a [Runner] starts or resumes from some moment on, in that order.
// Only one goroutine may use it. It needs no closing, and keeps the runs in memory until Next
// returns them.
type Starts struct{ next *start }

// start is an element of the linked list of all starts. A reader holds only the element that it
// waits for. No list of readers is needed, and elements that all readers have read are garbage.
type start struct {
	ready chan struct{} // closed when the fields below are set
	run   *Run
	next  *start
}

func newStart() *start { return &start{ready: make(chan struct{})} }

// Next returns the next run and waits for it if necessary. It returns the cause of ctx when ctx
// ends, after all runs that started before.
func (s *Starts) Next(ctx context.Context) (*Run, error) {
	select {
	case <-s.next.ready:
	case <-ctx.Done():
		select {
		case <-s.next.ready: // if both are ready, the run comes first
		default:
			return nil, context.Cause(ctx)
		}
	}
	run := s.next.run
	s.next = s.next.next
	return run, nil
}
