package routing

import (
	"slices"
	"strings"
	"time"

	"waza/runner/record"
)

// The states of a message. Those after Asked are final, except that late answers can change
// them.
const (
	// Choosing: no client has got it yet.
	Choosing = "choosing"
	// Asked: a client has got it and no client has taken it yet.
	Asked = "asked"
	// Taken: a client has acknowledged it, or has notified the user without rejecting it.
	Taken = "taken"
	// Refused: all clients that got it have rejected it.
	Refused = "refused"
	// Undelivered: no client got it.
	Undelivered = "undelivered"
)

// Waiting is the state of a recipient that has not answered; other states are kinds of answers.
const Waiting = "waiting"

// Routed is a message with its present state.
type Routed struct {
	Message
	Status string `json:"status" doc:"choosing: no client has got it yet; asked: a client has got it; taken: a client has acknowledged it or has notified the user; refused: all clients that got it have rejected it; undelivered: no client got it."`
	Reason string `json:"why,omitempty" doc:"Reason why no client took it; absent as long as a client can take it."`
	// Choices holds the first choice, then one for each time that other clients were asked.
	Choices    []Chosen    `json:"choices" doc:"The chosen clients with the reasons: the first choice, and one after each round of rejections."`
	Recipients []Recipient `json:"recipients" doc:"The clients that got it, in order."`
	// Notifications beyond the first 20 are counted in DroppedNotifications.
	Notifications        []Notification `json:"notifications,omitempty" doc:"Notifications of clients for the user; absent if there are no notifications."`
	DroppedNotifications int            `json:"droppedNotifications,omitempty" doc:"Number of further notifications, which are not kept."`
	// Usage is the cost of asking a model.
	Usage record.Usage `json:"-"`
}

// Chosen is a choice of clients.
type Chosen struct {
	By      string    `json:"by" doc:"prefix: the message named its client; model; words: its words were compared with the descriptions."`
	Clients []string  `json:"clients" doc:"The chosen clients; empty if no client should get it."`
	Reason  string    `json:"reason,omitempty" doc:"Reason of the choice; absent if the message named its client."`
	At      time.Time `json:"at" doc:"Time of the choice."`
}

// A Recipient is a client that got a message.
type Recipient struct {
	Client string    `json:"client" doc:"Its name."`
	State  string    `json:"state" doc:"waiting, acknowledged, rejected or notified."`
	Reason string    `json:"reason,omitempty" doc:"Its reason for rejecting the message; absent if it gave none."`
	At     time.Time `json:"at" doc:"Time of the last change of state."`
}

// Reroutes returns how often other clients were asked after a rejection.
func (r *Routed) Reroutes() int { return max(0, len(r.Choices)-1) }

// IsOver reports whether no further client is asked.
func (r *Routed) IsOver() bool {
	return r.Status == Taken && !r.isWaiting() || r.Status == Refused || r.Status == Undelivered
}

// Recipient returns a recipient by name; nil if the client did not get the message.
func (r *Routed) Recipient(client string) *Recipient {
	for i := range r.Recipients {
		if strings.EqualFold(r.Recipients[i].Client, client) {
			return &r.Recipients[i]
		}
	}
	return nil
}

// Has reports whether a recipient is in a state.
func (r *Routed) Has(state string) bool {
	return slices.ContainsFunc(r.Recipients, func(p Recipient) bool { return p.State == state })
}

func (r *Routed) isWaiting() bool { return r.Has(Waiting) }

// clone copies everything that changes.
func (r *Routed) clone() *Routed {
	c := *r
	c.Choices, c.Recipients, c.Notifications = slices.Clone(r.Choices), slices.Clone(r.Recipients), slices.Clone(r.Notifications)
	return &c
}

// settle sets the status that follows from the recipients.
func (r *Routed) settle() {
	switch {
	case r.Has(Acknowledged), r.Has(Notified):
		r.Status, r.Reason = Taken, ""
	case r.isWaiting():
		r.Status = Asked
	}
}
