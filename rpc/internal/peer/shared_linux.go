package peer

import "sync"

// shared lets many callers share a look at the machine, so that a flood of connections costs a
// few looks and not one for each. Its methods can be called concurrently.
type shared[T any] struct {
	look func() (T, error) // is called by one goroutine at a time

	looking sync.Mutex // held during a look
	mu      sync.Mutex // guards next
	next    *result[T] // of the next look; nil while nobody waits for one
}

// result is the result of a look. [shared.looking] guards it.
type result[T any] struct {
	done  bool
	value T
	err   error
}

// get returns the result of a look that starts after the call of get. All callers that come during
// an earlier look share it.
func (s *shared[T]) get() (T, error) { return s.await(s.join()) }

// join returns the place for the result of the next look.
func (s *shared[T]) join() *result[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &result[T]{}
	}
	return s.next
}

// await waits for the end of an earlier look. The first caller then looks for all that joined.
func (s *shared[T]) await(r *result[T]) (T, error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	if !r.done {
		s.mu.Lock()
		s.next = nil // a look that has started is too early for those who come now
		s.mu.Unlock()
		r.value, r.err = s.look()
		r.done = true
	}
	return r.value, r.err
}
