package provider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stream is an answer as it comes, whichever library reads it.
type stream[Part any] interface {
	Next() bool
	Current() Part
	Err() error
	Close() error
}

// receive gives the parts of an answer to add, which tells whether something of
// it is there, until the stream ends or add fails. It closes the stream.
func receive[Part any](s stream[Part], w *watch, add func(*Part) (begun bool, err error)) error {
	defer s.Close()
	for s.Next() {
		part := s.Current()
		begun, err := add(&part)
		w.event(begun)
		if err != nil {
			return err
		}
	}
	return s.Err()
}

// errCutShort says that a stream ended without its end having been announced.
var errCutShort = errors.New("the answer broke off")

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
