package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Budget is what a run may spend. A call reserves what it may cost at most, as
// far as that can be known, before it is made, so that a run stops before it goes
// over. It is safe for concurrent use; a nil Budget has no limits.
type Budget struct {
	// MaxCost is in US dollars, MaxTokens counts tokens read and written; 0
	// means no limit. They must not change once the budget is in use.
	MaxCost   float64
	MaxTokens int64

	mu      sync.Mutex // guards the fields below
	spent   Usage
	held    Usage
	changed chan struct{} // closed when a reservation ends; nil when nobody waits
}

// Spent is what the run has spent so far.
func (b *Budget) Spent() Usage {
	if b == nil {
		return Usage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// Spend counts what was spent by other ways than a [Client], such as an agent
// that calls its provider itself. The error is of kind [OverBudget] when no more
// should be spent; what was spent counts all the same.
func (b *Budget) Spend(u Usage) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = b.spent.Add(u)
	if over := b.overLocked(b.spent, true); over != noLimit {
		return b.errorLocked(over)
	}
	return nil
}

// Current returns err with what is spent by now, where it is of kind [OverBudget];
// else err itself. Calls that were under way may have spent more since.
func (b *Budget) Current(err error) error {
	var e *Error
	if b == nil || !errors.As(err, &e) || e.over == noLimit {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.errorLocked(e.over)
	now.Where = e.Where
	return now
}

// reserve sets aside what a call may cost. While calls that are under way may
// yet turn out cheaper than they may be, it waits for them. The caller settles.
func (b *Budget) reserve(ctx context.Context, most Usage) error {
	if b == nil {
		return nil
	}
	for {
		b.mu.Lock()
		if over := b.overLocked(b.spent.Add(most), false); over != noLimit {
			err := b.errorLocked(over)
			b.mu.Unlock()
			return err
		}
		if b.overLocked(b.spent.Add(b.held).Add(most), false) == noLimit {
			b.held = b.held.Add(most)
			b.mu.Unlock()
			return nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle puts what a call did cost in place of what was reserved for it.
func (b *Budget) settle(most, actual Usage) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held.InputTokens -= most.InputTokens
	b.held.OutputTokens -= most.OutputTokens
	b.held.CostUSD -= most.CostUSD
	b.spent = b.spent.Add(actual)
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// limit is one of a budget's.
type limit int

const (
	noLimit limit = iota
	costLimit
	tokenLimit
)

// overLocked says which limit a sum is over, or at when reached counts as well.
func (b *Budget) overLocked(sum Usage, reached bool) limit {
	// Sums of floats are not exact; a millionth of a cent is.
	const tiny = 1e-8
	switch tokens := sum.Tokens(); {
	case b.MaxCost > 0 && (sum.CostUSD > b.MaxCost+tiny || reached && sum.CostUSD >= b.MaxCost):
		return costLimit
	case b.MaxTokens > 0 && (tokens > b.MaxTokens || reached && tokens >= b.MaxTokens):
		return tokenLimit
	}
	return noLimit
}

func (b *Budget) errorLocked(over limit) *Error {
	e := &Error{Kind: OverBudget, over: over}
	if over == costLimit {
		e.Message = fmt.Sprintf("config.max_cost of $%g: $%.4f are spent, and a further call might go over", b.MaxCost, b.spent.CostUSD)
	} else {
		e.Message = fmt.Sprintf("config.max_tokens of %d: %d are spent, and a further call might go over", b.MaxTokens, b.spent.Tokens())
	}
	return e
}
