package proc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Scope gathers the programs that are started with a context, with all their
// descendants, so that [Scope.End] can kill what is left of them: also processes
// that made a session of their own, closed their output and cleared their
// environment. It is safe for concurrent use.
type Scope struct {
	mu    sync.Mutex // guards the fields below
	begun bool       // a program was started
	mark  mark       // of its programs; set when it begins, because most scopes never do
	group *cgroup    // nil when nothing was started, and where there are no control groups
}

type scopeKey struct{}

var scopes atomic.Int64

// WithScope returns a context whose programs belong to a new scope.
func WithScope(ctx context.Context) (context.Context, *Scope) {
	s := &Scope{}
	return context.WithValue(ctx, scopeKey{}, s), s
}

func scopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

// End kills what is left of the scope's programs and returns how many processes
// that were. Where nothing was started it costs nothing.
func (s *Scope) End() int {
	s.mu.Lock()
	begun, mark, group := s.begun, s.mark, s.group
	s.group = nil
	s.mu.Unlock()
	if !begun {
		return 0
	}
	return group.end() + killMarked(mark)
}

// join returns the mark of the scope's next program, and the group in which it is to
// start; nil for none.
func (s *Scope) join() (mark, *cgroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.mark = mark{variable: fmt.Sprintf("%sS%d=", instanceMark, scopes.Add(1)), limit: newLimit(), since: uint64(Now())}
	}
	if s.group == nil {
		s.group = newCgroup()
	}
	return s.mark, s.group
}

// mark identifies the descendants of a program: each inherits both, unless it
// clears the one on purpose and sets the other.
type mark struct {
	// variable begins a variable of the environment.
	variable string
	// limit is a value of a resource limit; the zero value is none.
	limit limitRange
	// main spares a process and its descendants by parentage, and since, a [Moment],
	// what was started before. 0 spares nothing.
	main  int
	since uint64
}

// limitRange is a range of values of a resource limit that has no effect, from the
// first to the last.
type limitRange struct{ first, last uint64 }

func (r limitRange) holds(n uint64) bool { return r.first != 0 && r.first <= n && n <= r.last }
