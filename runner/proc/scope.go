package proc

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
)

// A Scope tracks the programs that are started with a context, and all their descendants.
// [Scope.End] kills the remaining ones, also processes that created a new session, closed their
// output and cleared their environment. A Scope is safe for concurrent use.
type Scope struct {
	mu      sync.Mutex // guards the fields below
	open    bool       // End has not been called
	started bool       // a program was started
	mark    mark       // of its programs; set when the first starts, because most scopes start none
	groups  []*cgroup  // the last is in use; empty when nothing was started, and where there are no control groups
}

type scopeKey struct{}

var scopes atomic.Int64

// WithScope returns a context whose programs belong to a new scope.
func WithScope(ctx context.Context) (context.Context, *Scope) {
	c := &ScopeContext{}
	return c, c.Init(ctx)
}

// ScopeContext is a context with a scope of its own, see [WithScope]. Only Init makes it ready for
// use.
type ScopeContext struct {
	context.Context
	scope Scope
}

// Init derives the context from another one, and returns its scope.
func (c *ScopeContext) Init(ctx context.Context) *Scope {
	openScope()
	c.Context, c.scope.open = ctx, true
	return &c.scope
}

// Value implements [context.Context].
func (c *ScopeContext) Value(key any) any {
	if key == (scopeKey{}) {
		return &c.scope
	}
	return c.Context.Value(key)
}

func scopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

// End kills the remaining processes of the scope and returns their number. It costs nothing
// where no program was started.
func (s *Scope) End() int {
	s.mu.Lock()
	open, started, mark, groups := s.open, s.started, s.mark, s.groups
	s.open, s.groups = false, nil
	s.mu.Unlock()
	if open {
		defer closeScope()
	}
	if !started {
		return 0
	}
	killed := 0
	for _, group := range groups {
		killed += group.end()
	}
	return killed + mark.kill()
}

// join returns the mark of the scope's next program, and its control group; nil for none.
func (s *Scope) join() (mark, *cgroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		s.mark = mark{variable: instanceMark + "S" + strconv.FormatInt(scopes.Add(1), 10) + "=", limit: newLimit(), since: Now()}
	}
	n := len(s.groups)
	if n == 0 || s.groups[n-1].gone() {
		if g := newCgroup(); g != nil {
			s.groups = append(s.groups, g)
		}
	}
	if n = len(s.groups); n == 0 {
		return s.mark, nil
	}
	return s.mark, s.groups[n-1]
}

// mark identifies the descendants of a program. Each inherits both the variable and the limit,
// unless it clears one and sets the other on purpose.
type mark struct {
	// variable is the prefix of an environment variable.
	variable string
	// sparing is the prefix of an environment variable that spares a process; empty spares none.
	sparing string
	// limit is a value of a resource limit; the zero value means no limit.
	limit limitRange
	// main spares the process with that id and its descendants by parentage; 0 spares nothing.
	// since spares processes that were started before it; the zero value spares nothing.
	main  int
	since Moment
}

// limitRange is a range of values of a resource limit that has no effect, both ends included. A
// program in a sandbox carries the last, and others the first.
type limitRange struct{ first, last uint64 }

func (r limitRange) number(sandboxed bool) uint64 {
	if sandboxed {
		return r.last
	}
	return r.first
}

func (r limitRange) holds(n uint64) bool { return r.first != 0 && r.first <= n && n <= r.last }
