package board

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// EventKey is the attribute of log records that are also sent to admins. Its value names the
// event, such as wrong_key.
const EventKey = "event"

// alertPause is the minimum time between two messages about the same event.
const alertPause = time.Second

// SystemMessage is a message about the server itself. Only admins get it.
type SystemMessage struct {
	Type    string `json:"type"`
	Level   string `json:"level"` // warning or error
	Event   string `json:"event"`
	Message string `json:"message"`
	// Count is the number of events since the previous message.
	Count     int  `json:"count"`
	Timestamp Time `json:"timestamp"`
}

// Alerts is a [slog.Handler] that passes records on. It also sends warnings and errors with the
// attribute [EventKey] to the admins who watch a board. Per event, it sends at most one message
// a second, with the number of occurrences. Create it with [NewAlerts]. It is safe for
// concurrent use.
type Alerts struct {
	next  slog.Handler
	to    *alerts
	attrs []slog.Attr
}

// alerts is the state that handlers share: the events to send.
type alerts struct {
	mu      sync.Mutex // guards the fields below
	board   *Board     // nil until SendTo
	byEvent map[string]*alert
}

// alert is an event.
type alert struct {
	SystemMessage
	sent time.Time
	due  bool // a timer will send it
}

// NewAlerts returns a handler that passes records on to next.
func NewAlerts(next slog.Handler) *Alerts {
	return &Alerts{next: next, to: &alerts{byEvent: map[string]*alert{}}}
}

// SendTo sets the board whose admins get the messages. Earlier events are not sent.
func (h *Alerts) SendTo(b *Board) {
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	h.to.board = b
}

// Enabled reports whether records of the level are handled.
func (h *Alerts) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.next.Enabled(ctx, level)
}

// WithAttrs returns a handler that adds these attributes to its records.
func (h *Alerts) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Alerts{next: h.next.WithAttrs(attrs), to: h.to, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup returns a handler that passes records on in a group.
func (h *Alerts) WithGroup(name string) slog.Handler {
	return &Alerts{next: h.next.WithGroup(name), to: h.to, attrs: h.attrs}
}

// Handle passes a record on, and sends it to admins if it has an event. It does not wait for the
// sending.
func (h *Alerts) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		h.alert(&r)
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h *Alerts) alert(r *slog.Record) {
	m := SystemMessage{Type: "system", Level: "warning", Timestamp: Time{r.Time}}
	if r.Level >= slog.LevelError {
		m.Level = "error"
	}
	var details []string
	add := func(a slog.Attr) bool {
		if a.Key == EventKey {
			m.Event = a.Value.String()
		} else {
			details = append(details, fmt.Sprintf("%s=%v", a.Key, a.Value))
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	if r.Attrs(add); m.Event == "" {
		return
	}
	m.Message = Failure(strings.TrimSuffix(r.Message+": "+strings.Join(details, ", "), ": "))
	t := h.to
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.board == nil {
		return
	}
	a := t.byEvent[m.Event]
	if a == nil {
		a = &alert{}
		t.byEvent[m.Event] = a
	}
	m.Count = a.Count + 1
	if a.SystemMessage = m; !a.due {
		a.due = true
		// Send later, because the caller of the log may hold the lock of the board.
		time.AfterFunc(max(0, alertPause-time.Since(a.sent)), func() { t.send(a) })
	}
}

func (t *alerts) send(a *alert) {
	t.mu.Lock()
	b, msg := t.board, encode(&a.SystemMessage)
	a.Count, a.due, a.sent = 0, false, time.Now()
	t.mu.Unlock()
	b.sendAdmins(msg)
}

// sendAdmins sends a message to all admins.
func (b *Board) sendAdmins(msg []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watchers {
		if w.viewer.Admin {
			w.send(msg)
		}
	}
}
