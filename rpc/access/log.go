package access

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"waza/eval/text"
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
	return slog.New(&limitedHandler{Handler: log.Handler(), quota: &logQuota{limit: rate.NewLimiter(rate.Every(logPause), logBurst)}})
}

// logQuota is shared by all loggers that derive from one.
type logQuota struct {
	limit   *rate.Limiter
	omitted atomic.Int64 // records since the last one that was written
}

type limitedHandler struct {
	slog.Handler
	quota *logQuota
}

func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if !h.quota.limit.AllowN(r.Time, 1) {
		h.quota.omitted.Add(1)
		return nil
	}
	short := slog.NewRecord(r.Time, r.Level, text.Clip(r.Message, logDetail), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(clipAttr(a))
		return true
	})
	if omitted := h.quota.omitted.Swap(0); omitted > 0 {
		short.AddAttrs(slog.Int64("omitted", omitted))
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
		if s := v.String(); len(s) > logDetail {
			a.Value = slog.StringValue(text.Clip(s, logDetail))
		}
	}
	return a
}
