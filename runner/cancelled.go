package runner

import (
	"context"
	"errors"
)

// Cancelled reports whether the run was cancelled, be it over yet or not.
func (r *Run) Cancelled() bool { return errors.Is(context.Cause(r.ctx), errCancelled) }
