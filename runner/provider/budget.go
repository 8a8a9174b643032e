package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"waza/runner/record"
)

// Budget limits what a run can spend. A call first reserves its maximum cost, as far as that is
// known, so that a run stops before it exceeds a limit. It is safe for concurrent use. A nil
// Budget has no limits.
type Budget struct {
	// MaxCost is in US dollars. MaxTokens counts input and output tokens. 0 means no limit. They
	// must not change while the budget is in use.
	MaxCost   float64
	MaxTokens int64

	mu      sync.Mutex // guards the fields below
	spent   record.Usage
	held    record.Usage
	changed chan struct{} // closed when a reservation ends; nil if no call waits
}

// Spent returns what the run has spent until now.
func (b *Budget) Spent() record.Usage {
	if b == nil {
		return record.Usage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// Spend counts spending outside a [Client], such as that of an agent that calls its provider
// itself. The error is of kind [OverBudget] if the limit is reached; the spending counts even
// then.
func (b *Budget) Spend(u record.Usage) error {
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

// Current returns an error of kind [OverBudget] with the current spending, because concurrent
// calls can have spent more since. It returns other errors unchanged.
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

// reserve sets aside the maximum cost of a call. It waits for running calls, as long as these
// can turn out cheaper than reserved. The caller must call settle.
func (b *Budget) reserve(ctx context.Context, most record.Usage) error {
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

// settle replaces the reservation of a call by its actual cost.
func (b *Budget) settle(most, actual record.Usage) {
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

// limit identifies a limit of a budget.
type limit int

const (
	noLimit limit = iota
	costLimit
	tokenLimit
)

// overLocked returns the limit that a sum exceeds or, if reached is set, equals.
func (b *Budget) overLocked(sum record.Usage, reached bool) limit {
	// Sums of floats are inexact; this is a millionth of a cent.
	const tiny = 1e-8
	switch tokens := sum.Total(); {
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
		e.Message = fmt.Sprintf("config.max_cost of $%g: $%.4f spent, and another call could exceed it", b.MaxCost, b.spent.CostUSD)
	} else {
		e.Message = fmt.Sprintf("config.max_tokens of %d: %d spent, and another call could exceed it", b.MaxTokens, b.spent.Total())
	}
	return e
}
