package routing

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"waza/eval/text"
)

// The limits of the protocol.
const (
	DefaultReroutes        = 3
	DefaultResponseTimeout = 30 * time.Second
)

// maxNotifications is the most notifications kept of a message, maxReason the most bytes of a
// reason.
const (
	maxNotifications = 20
	maxReason        = 2 << 10
)

// The reasons of rejections that did not come from a client.
const (
	ReasonTimeout = "Response timeout"
	ReasonLeft    = "Disconnected before it answered"
	ReasonRestart = "The router was restarted before it answered"
)

// allRejected is the reason of a refused message.
const allRejected = "all clients that got it rejected it"

// A Router delivers messages to clients. It is safe for concurrent use.
type Router struct {
	// Chooser chooses the clients of messages that do not name a client. Required.
	Chooser Chooser
	// MaxReroutes is how often other clients are asked after rejections.
	MaxReroutes int
	// ResponseTimeout is the most time for a client's first answer; 0 means no limit.
	ResponseTimeout time.Duration
}

// A Flight is a message on its way. It is safe for concurrent use.
type Flight struct {
	router *Router
	post   Post
	wake   chan struct{} // has a value after a change

	mu      sync.Mutex // guards the fields below, and is held while Post.Changed is called
	routed  Routed
	handled map[string]bool // rejections that led to a choice, by client in lower case
	timers  map[string]*time.Timer
	over    bool
	err     error // of Post.Changed
}

// NewFlight returns the flight of a message, which [Flight.Run] carries out. An interrupted message
// continues; clients that have not answered then count as having rejected it. A finished message
// only accepts answers.
func (r *Router) NewFlight(m Routed, p Post) *Flight {
	f := &Flight{
		router: r, post: p, wake: make(chan struct{}, 1), routed: *m.clone(), handled: map[string]bool{},
		timers: map[string]*time.Timer{},
	}
	f.routed.Status = cmp.Or(f.routed.Status, Choosing)
	f.over = f.routed.IsOver()
	if len(f.routed.Choices) > 1 { // rejections before the last choice led to it
		last := f.routed.Choices[len(f.routed.Choices)-1]
		for _, p := range f.routed.Recipients {
			if p.State == Rejected && !slices.Contains(last.Clients, p.Client) {
				f.handled[strings.ToLower(p.Client)] = true
			}
		}
	}
	for i := range f.routed.Recipients {
		if p := &f.routed.Recipients[i]; p.State == Waiting {
			p.State, p.Reason, p.At = Rejected, ReasonRestart, time.Now()
		}
	}
	return f
}

// Routed returns the present state of the message. The caller owns it.
func (f *Flight) Routed() *Routed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.routed.clone()
}

// Answer adds an answer of a client. It returns false if the client did not get the message. The
// first acknowledgement or rejection counts, with exceptions: a client that rejected the
// message, or notified the user, can still acknowledge it, and a client that notified the user
// can still reject it. After a rejection that did not come from a client, such as
// [ReasonTimeout], a notification counts as an answer, too. Notifications can follow at any
// time, even after Run has returned.
func (f *Flight) Answer(client string, a Answer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.routed.Recipient(client)
	if p == nil {
		return false
	}
	if n := a.Notification; n != nil {
		if len(f.routed.Notifications) < maxNotifications {
			f.routed.Notifications = append(f.routed.Notifications, *n)
		} else {
			f.routed.DroppedNotifications++
		}
	}
	switch {
	case p.State == Acknowledged, p.State == Rejected && a.Kind != Acknowledged &&
		(a.Kind != Notified || !p.isImplicit()), p.State == Notified && a.Kind == Notified:
		if a.Notification == nil {
			return true // it has answered
		}
	default:
		p.State, p.Reason, p.At = a.Kind, clip(a.Reason), time.Now()
		if t := f.timers[strings.ToLower(p.Client)]; t != nil {
			t.Stop()
		}
	}
	f.routed.settle()
	if r := &f.routed; f.over && r.Status == Taken && !r.Has(Acknowledged) && !r.Has(Notified) {
		r.Status, r.Reason = Refused, allRejected // the client that had notified the user has rejected it
	}
	f.changedLocked()
	return true
}

// isImplicit reports whether a rejection did not come from a client.
func (p *Recipient) isImplicit() bool {
	return p.Reason == ReasonTimeout || p.Reason == ReasonLeft || p.Reason == ReasonRestart
}

// Left rejects the message for a client that has disconnected without an answer.
func (f *Flight) Left(client string) { f.reject(client, ReasonLeft) }

// reject rejects the message for a client that has not answered.
func (f *Flight) reject(client, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.routed.Recipient(client); p != nil && p.State == Waiting {
		p.State, p.Reason, p.At = Rejected, clip(reason), time.Now()
		f.changedLocked()
	}
}

// changedLocked saves a change and wakes Run.
func (f *Flight) changedLocked() {
	if err := f.post.Changed(f.routed.clone()); err != nil && f.err == nil {
		f.err = err
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run delivers the message until every recipient has answered and no other client is asked. It
// can be called once. The error is the cause of ctx, or comes from [Post.Changed] or the
// [Chooser]; [Router.NewFlight] can then continue the message.
func (f *Flight) Run(ctx context.Context) error {
	defer f.stop()
	for {
		q, done := f.next()
		if err := f.failure(); err != nil {
			return err
		}
		switch {
		case done:
			return f.finish()
		case q != nil:
			if err := f.choose(ctx, q); err != nil {
				return err
			}
			continue
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *Flight) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// stop ends the timers.
func (f *Flight) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	for _, t := range f.timers {
		t.Stop()
	}
}

// next returns the next step: a question who gets the message, or done. If both are zero, Run
// waits for an answer.
func (f *Flight) next() (q *Question, done bool) {
	clients := f.post.Clients()
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.routed
	switch {
	case f.over:
		return nil, true
	case len(r.Choices) == 0:
		if len(clients) == 0 {
			r.Status, r.Reason = Undelivered, "no client is connected"
			if note := unknown(r.Text, clients); note != "" {
				r.Reason = note + sentence(r.Reason)
			}
			return nil, true
		}
		return &Question{Text: strings.TrimSpace(r.Text), Clients: clients}, false
	case f.mayRerouteLocked():
		asked := map[string]bool{}
		q := &Question{Text: r.Text}
		for _, p := range r.Recipients {
			asked[strings.ToLower(p.Client)] = true
			if p.State == Rejected {
				q.Rejections = append(q.Rejections, Rejection{p.Client, p.Reason})
			}
		}
		if first := r.Choices[0]; first.By == ByPrefix {
			_, q.Text, _ = strings.Cut(r.Text, string(r.Text[strings.IndexAny(r.Text, ":,")]))
		}
		q.Text = strings.TrimSpace(q.Text)
		if q.Clients = without(clients, asked); len(q.Clients) > 0 {
			return q, false
		}
	}
	return nil, !r.isWaiting()
}

// mayRerouteLocked reports whether a rejection allows asking other clients. A rejection that
// follows a rerouting waits for the clients asked then: several recipients that time out
// together lead to one choice.
func (f *Flight) mayRerouteLocked() bool {
	r := &f.routed
	if r.Reroutes() >= f.router.MaxReroutes || r.Has(Acknowledged) || r.Has(Notified) {
		return false
	}
	last := r.Choices[len(r.Choices)-1].Clients
	asked := slices.ContainsFunc(r.Recipients, func(p Recipient) bool { return p.State == Waiting && slices.Contains(last, p.Client) })
	return slices.ContainsFunc(r.Recipients, func(p Recipient) bool {
		return p.State == Rejected && !f.handled[strings.ToLower(p.Client)] && (!asked || slices.Contains(last, p.Client))
	})
}

// choose asks who gets the message, and delivers it to them.
func (f *Flight) choose(ctx context.Context, q *Question) error {
	choice := &Choice{By: ByPrefix}
	name, rest, direct, note := "", "", false, ""
	if f.isFirst() {
		name, rest, direct = Direct(q.Text, q.Clients)
		note = unknown(q.Text, q.Clients)
	}
	if direct {
		choice.Clients = []string{name}
	} else {
		var err error
		if choice, err = f.router.Chooser.Choose(ctx, q); err != nil {
			return err
		}
	}
	d := &Delivery{Message: f.Routed().Message, Direct: direct, Reason: choice.Reason}
	if d.Text = q.Text; direct {
		d.Text, d.Reason = rest, ""
	}
	if note != "" {
		noted := *choice
		noted.Reason = note + sentence(choice.Reason) // for the sender, not for the clients
		choice = &noted
	}
	chosen, err := f.chosen(q, choice)
	for _, client := range chosen {
		if err != nil {
			break
		}
		f.deliver(client, d)
	}
	return err
}

func (f *Flight) isFirst() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.routed.Choices) == 0
}

// chosen records a choice and returns the clients that now get the message. It returns none if a
// client has taken the message in the meantime.
func (f *Flight) chosen(q *Question, choice *Choice) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &f.routed
	r.Usage = r.Usage.Add(choice.Usage)
	for _, rejection := range q.Rejections {
		f.handled[strings.ToLower(rejection.Client)] = true
	}
	if r.Has(Acknowledged) || r.Has(Notified) {
		return nil, nil
	}
	now := time.Now()
	c := Chosen{By: choice.By, Reason: clip(choice.Reason), At: now, Clients: []string{}}
	for _, client := range q.Clients {
		if slices.ContainsFunc(choice.Clients, func(name string) bool { return strings.EqualFold(name, client.Name) }) {
			c.Clients = append(c.Clients, client.Name)
			r.Recipients = append(r.Recipients, Recipient{Client: client.Name, State: Waiting, At: now})
		}
	}
	r.Choices = append(r.Choices, c)
	if len(c.Clients) == 0 && len(r.Recipients) == 0 {
		r.Status, r.Reason = Undelivered, choice.Reason
	}
	r.settle()
	f.changedLocked()
	return c.Clients, f.err
}

// deliver passes the message to a client and starts its timer.
func (f *Flight) deliver(client string, d *Delivery) {
	if timeout := f.router.ResponseTimeout; timeout > 0 {
		f.mu.Lock()
		if !f.over && f.routed.Recipient(client).State == Waiting {
			f.timers[strings.ToLower(client)] = time.AfterFunc(timeout, func() { f.reject(client, ReasonTimeout) })
		}
		f.mu.Unlock()
	}
	if err := f.post.Deliver(client, d); err != nil {
		f.reject(client, err.Error())
	}
}

// finish records how the message ended.
func (f *Flight) finish() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	f.over = true
	r := &f.routed
	if r.settle(); r.Status == Asked || r.Status == Choosing {
		r.Status, r.Reason = Refused, allRejected
	}
	f.changedLocked()
	return f.err
}

// clip shortens a foreign text.
func clip(s string) string { return text.Clip(strings.ToValidUTF8(s, "\uFFFD"), maxReason) }
