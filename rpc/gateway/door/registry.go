package door

import (
	"slices"
	"time"
)

// Info describes a connection in [Door.List].
type Info struct {
	// Name of the client; empty until the client has identified itself.
	Name string `json:"name,omitempty"`
	// Address of the client.
	Address string `json:"address"`
	// Time of the connection.
	Since time.Time `json:"since"`
	// Bytes queued for the client.
	QueuedBytes int64 `json:"queuedBytes"`
	// Number of messages from the client.
	Received int64 `json:"received"`
	// Number of messages to the client.
	Sent int64 `json:"sent"`
}

// List returns the connections, oldest first.
func (d *Door) List() []Info {
	var list []Info
	for _, c := range d.list() {
		c.out.mu.Lock()
		queued := c.out.queued
		c.out.mu.Unlock()
		list = append(list, Info{
			Name: c.Name(), Address: c.Addr(), Since: c.pulse.since, QueuedBytes: queued,
			Received: c.received.Load(), Sent: c.out.sent.Load(),
		})
	}
	slices.SortFunc(list, func(a, b Info) int { return a.Since.Compare(b.Since) })
	return list
}
