package worker

import (
	"context"
	"slices"
	"sync"
)

// slots are the places for concurrent trials of a worker. The earliest waiter gets the next one.
// It is safe for concurrent use.
type slots struct {
	total int
	none  chan struct{} // closed when all slots are free after end

	mu      sync.Mutex // guards the fields below
	taken   int        // used by trials and by pending requests for orders
	doing   int        // used by trials
	waiting []*waiter
	ended   bool
}

// waiter waits for slots.
type waiter struct {
	all   bool
	ready chan int // receives the number of slots; has a buffer of one
}

func newSlots(total int) *slots { return &slots{total: total, none: make(chan struct{})} }

// take waits for free slots, and takes one or all of them. The error is the cause of ctx.
func (s *slots) take(ctx context.Context, all bool) (n int, err error) {
	w := &waiter{all, make(chan int, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grantLocked()
	s.mu.Unlock()
	select {
	case n := <-w.ready:
		return n, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		s.freeLocked(<-w.ready)
	}
	return 0, context.Cause(ctx)
}

func (s *slots) grantLocked() {
	for len(s.waiting) > 0 && s.taken < s.total {
		w := s.waiting[0]
		s.waiting = s.waiting[1:]
		n := 1
		if w.all {
			n = s.total - s.taken
		}
		s.taken += n
		w.ready <- n
	}
}

// assign counts a taken slot as in use by a trial.
func (s *slots) assign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing++
}

// done frees the slot of a trial.
func (s *slots) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing--
	s.freeLocked(1)
}

// free gives back unused slots.
func (s *slots) free(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeLocked(n)
}

func (s *slots) freeLocked(n int) {
	s.taken -= n
	s.grantLocked()
	s.overLocked()
}

// end announces that no further calls of take follow, except those already waiting.
func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.overLocked()
}

func (s *slots) overLocked() {
	if !s.ended || s.taken > 0 || len(s.waiting) > 0 {
		return
	}
	select {
	case <-s.none:
	default:
		close(s.none)
	}
}

// idle returns a channel that is closed when, after end, no slot is taken.
func (s *slots) idle() <-chan struct{} { return s.none }

// busy returns the number of trials with a slot.
func (s *slots) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doing
}
