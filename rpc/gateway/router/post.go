package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"waza/eval/text"
	"waza/runner/routing"
)

// errLeft is the error of deliveries to disconnected clients.
var errLeft = errors.New(routing.ReasonLeft)

// maxSentID is the maximum size of a message id chosen by its sender, in bytes.
const maxSentID = 100

// checked returns a validated message with its defaults.
func checked(m *routing.Message) (*routing.Message, error) {
	sent := *m
	switch {
	case strings.TrimSpace(sent.Text) == "":
		return nil, invalid("text of the message is empty")
	case len(sent.Text) > maxText:
		return nil, invalid("text of the message has %d bytes, the maximum is %d", len(sent.Text), maxText)
	case !utf8.ValidString(sent.Text):
		return nil, invalid("text of the message must be UTF-8")
	case sent.ID != "" && (len(sent.ID) > maxSentID || !strings.HasPrefix(sent.ID, "msg-")):
		return nil, invalid("id of the message must start with msg- and have at most %d bytes, got %q", maxSentID, text.Clip(sent.ID, 40))
	case sent.InputMethod != "" && sent.InputMethod != routing.Text && sent.InputMethod != routing.Voice:
		return nil, invalid("input method must be voice or text, got %q", text.Clip(sent.InputMethod, 40))
	case sent.Confidence != nil && !(*sent.Confidence >= 0 && *sent.Confidence <= 1): // also false for NaN
		return nil, invalid("confidence must be a number from 0 to 1, got %v", *sent.Confidence)
	}
	if sent.ID == "" {
		sent.ID = routing.NewID()
	}
	if sent.InputMethod == "" {
		sent.InputMethod = routing.Text
	}
	if sent.InputMethod == routing.Text {
		sent.Confidence = nil
	}
	if sent.Timestamp.IsZero() {
		sent.Timestamp = time.Now()
	}
	sent.Timestamp = sent.Timestamp.UTC().Truncate(time.Millisecond)
	return &sent, nil
}

func invalid(format string, args ...any) error {
	return &routing.MessageError{Reason: fmt.Sprintf(format, args...)}
}

// post delivers the messages of the registry to clients. It implements [routing.Post].
type post struct{ *registry }

// Clients implements [routing.Post].
func (p post) Clients() []routing.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]routing.Client, 0, len(p.clients))
	for _, c := range p.sortedLocked() {
		list = append(list, c.Client)
	}
	return list
}

// Deliver implements [routing.Post]. A client that left before does not have the message; leave
// handles clients that leave later.
func (p post) Deliver(name string, d *routing.Delivery) error {
	p.mu.Lock()
	c := p.clients[strings.ToLower(name)]
	p.mu.Unlock()
	if c == nil || c.conn.Send(messageOf(d).encode()) != nil {
		return errLeft
	}
	return nil
}

// Changed implements [routing.Post].
func (p post) Changed(r *routing.Routed) error {
	if err := p.save(p.ctx, r); err != nil {
		return err
	}
	p.mu.Lock()
	e := p.messages[r.ID]
	if e == nil {
		p.mu.Unlock()
		return nil // it was removed just before
	}
	before := e.routed
	e.routed = r
	for i := range r.Recipients {
		now := &r.Recipients[i]
		old := before.Recipient(now.Client)
		if old != nil && old.State == now.State {
			continue
		}
		if c := p.clients[strings.ToLower(now.Client)]; c != nil {
			if now.State == routing.Acknowledged {
				c.taken++
			}
			p.board.Changed(subject{client: c.Name})
		}
	}
	p.board.Changed(subject{message: r.ID})
	p.mu.Unlock()
	for _, n := range r.Notifications[min(len(before.Notifications), len(r.Notifications)):] {
		p.show(r.ID, &n)
	}
	return nil
}

// show shows a notification to the user, or logs it without a desktop.
func (p post) show(messageID string, n *routing.Notification) {
	if p.desktop != nil && p.desktop.Show(n.Title, n.Body, n.Priority) {
		return
	}
	p.log.Info("notification", "message", messageID, "name", n.Client, "title", text.Clip(n.Title, 100), "body",
		text.Clip(n.Body, 500), "priority", n.Priority)
}

// save stores the state of a message.
func (p post) save(ctx context.Context, r *routing.Routed) error {
	if p.store == nil {
		return nil
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = p.store.Save(context.WithoutCancel(ctx), r.ID, string(data))
	}
	if err != nil {
		return fmt.Errorf("message %s could not be stored: %w", r.ID, err)
	}
	return nil
}

// resume resumes the messages in the store, oldest first. Finished messages can still get
// answers.
func (o *registry) resume() error {
	list, err := o.store.List(o.ctx)
	if err != nil {
		return err
	}
	for _, data := range list {
		r := new(routing.Routed)
		if err := json.Unmarshal([]byte(data), r); err != nil || r.ID == "" {
			o.log.Error("message of an earlier server could not be read", "error", err)
			continue
		}
		e := &entry{id: r.ID, flight: o.router.NewFlight(*r, post{o}), resumed: true, done: make(chan struct{})}
		e.routed = e.flight.Routed()
		o.mu.Lock()
		o.addLocked(e)
		if e.routed.IsOver() {
			o.active--
			e.over = true
			close(e.done)
		} else {
			o.running.Go(func() { o.run(e) })
		}
		o.mu.Unlock()
	}
	o.forget()
	return nil
}

// awaitClients gives the clients of an earlier server a moment to reconnect. A message that
// names its client waits only for that client.
func (p post) awaitClients(e *entry) {
	ctx, cancel := context.WithTimeout(p.ctx, time.Duration(p.config.ReconnectWait))
	defer cancel()
	for {
		p.mu.Lock()
		arrived, r := p.arrived, e.routed
		p.mu.Unlock()
		if len(r.Choices) == 0 {
			if _, _, direct := routing.Direct(r.Text, p.Clients()); direct {
				return
			}
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return
		}
	}
}
