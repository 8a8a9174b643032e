package provider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watch keeps the times of one try, and ends it when nothing comes.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	start  time.Time
	first  time.Duration
	limit  time.Duration
	timer  *time.Timer
}

var errSilent = errors.New("nothing came")

func newWatch(ctx context.Context, limit time.Duration) *watch {
	w := &watch{start: time.Now(), limit: limit}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	if limit > 0 {
		w.timer = time.AfterFunc(limit, func() { w.cancel(errSilent) })
	}
	return w
}

// event notes a sign of life, and whether something of the answer is there.
func (w *watch) event(answer bool) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.first == 0 && answer {
		w.first = max(1, time.Since(w.start))
	}
}

func (w *watch) times(r *Reply) { r.FirstToken, r.Duration = w.first, time.Since(w.start) }

// silence returns the error of a try that ended because nothing came.
func (w *watch) silence(where string) error {
	if !errors.Is(context.Cause(w.ctx), errSilent) {
		return nil
	}
	return &Error{Kind: Silent, Where: where, Message: fmt.Sprintf("no sign of life within %v (first_event_timeout_seconds)", w.limit)}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
}
