package provider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watch measures the times of one try, and cancels it if nothing arrives.
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

// event records a sign of life. answer means that it is a part of the answer.
func (w *watch) event(answer bool) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.first == 0 && answer {
		w.first = max(1, time.Since(w.start))
	}
}

func (w *watch) times(r *Reply) { r.FirstToken, r.Duration = w.first, time.Since(w.start) }

// silence returns the error of a try that ended because nothing arrived, or nil.
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
