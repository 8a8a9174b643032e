package access

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The limits of the log records that strangers cause. Anyone who reaches an address can cause
// some, and must not be able to fill a disk with them.
const (
	logBurst  = 50          // records at once
	logPause  = time.Second // until one more is allowed
	logDetail = 256         // bytes of a text
)

// LimitLog returns a logger for events that clients cause before they have shown who they are.
// It writes at most 50 records at once and one per second after that, and shortens long texts.
// The next record after omitted ones has their number as the attribute omitted.
func LimitLog(log *slog.Logger) *slog.Logger {
	return slog.New(&limitedHandler{Handler: log.Handler(), quota: &logQuota{left: logBurst}})
}

// logQuota is shared by all loggers that derive from one.
type logQuota struct {
	mu      sync.Mutex // guards the fields below
	left    float64
	last    time.Time
	omitted int
}

// take reports whether a record may be written, and how many were omitted before it.
func (q *logQuota) take(now time.Time) (omitted int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.last.IsZero() {
		q.left = min(logBurst, q.left+max(0, now.Sub(q.last).Seconds()/logPause.Seconds()))
	}
	q.last = now
	if q.left < 1 {
		q.omitted++
		return 0, false
	}
	q.left--
	omitted, q.omitted = q.omitted, 0
	return omitted, true
}

type limitedHandler struct {
	slog.Handler
	quota *logQuota
}

func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	omitted, ok := h.quota.take(r.Time)
	if !ok {
		return nil
	}
	short := slog.NewRecord(r.Time, r.Level, clipText(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(clipAttr(a))
		return true
	})
	if omitted > 0 {
		short.AddAttrs(slog.Int("omitted", omitted))
	}
	return h.Handler.Handle(ctx, short)
}

func (h *limitedHandler) WithAttrs(list []slog.Attr) slog.Handler {
	short := make([]slog.Attr, len(list))
	for i, a := range list {
		short[i] = clipAttr(a)
	}
	return &limitedHandler{Handler: h.Handler.WithAttrs(short), quota: h.quota}
}

func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{Handler: h.Handler.WithGroup(name), quota: h.quota}
}

// clipAttr shortens the text of an attribute. Errors can contain text of a client, too.
func clipAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString, slog.KindAny:
		if text := v.String(); len(text) > logDetail {
			a.Value = slog.StringValue(clipText(text))
		}
	}
	return a
}

func clipText(s string) string {
	if len(s) <= logDetail {
		return s
	}
	return strings.ToValidUTF8(s[:logDetail], "") + "…"
}
