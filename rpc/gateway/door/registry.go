package door

import (
	"slices"
	"time"
)

// Info is a connection as [Door.List] shows it.
type Info struct {
	// Name of the client; empty until it has identified itself.
	Name string `json:"name,omitempty"`
	// Address the client connects from.
	Address string `json:"address"`
	// When it connected.
	Since time.Time `json:"since"`
	// Bytes that wait for the client to read them.
	QueuedBytes int64 `json:"queuedBytes"`
	// Messages from the client.
	Received int64 `json:"received"`
	// Messages to the client.
	Sent int64 `json:"sent"`
}

// List lists the connections, oldest first.
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
