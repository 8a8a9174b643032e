package worker

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"waza/runner/fleet"
	"waza/runner/pause"
)

// card is the worker's card in the bucket of its team. It owns the goroutine that renews it.
type card struct {
	worker  *Worker
	changed chan struct{} // signals that the card must be renewed; has a buffer of one
}

// renew requests a renewal of the card.
func (c *card) renew() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// keep renews the card until ctx ends.
func (c *card) keep(ctx context.Context) {
	w := c.worker
	tick := time.NewTicker(fleet.Beat)
	defer tick.Stop()
	reported := false
	for {
		if err := c.put(ctx); err != nil {
			w.o.Log.Debug("card not renewed", "error", err)
		}
		full := w.o.Conn.Repair()
		if full != nil && !reported {
			w.o.Log.Warn("the fleet stores no messages", "error", full)
		}
		reported = full != nil
		if pause.For(ctx, cardPause) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-c.changed:
		case <-ctx.Done():
			return
		}
	}
}

// cardPause is the minimum time between two renewals.
const cardPause = 200 * time.Millisecond

func (c *card) put(ctx context.Context) error {
	w := c.worker
	host, _ := os.Hostname()
	s := w.Status()
	content := fleet.WorkerCard{
		Protocol: fleet.Protocol,
		WorkerStanding: fleet.WorkerStanding{
			ID: w.o.ID, Host: host, PID: os.Getpid(), Version: w.o.Version, Started: w.started,
			Slots: w.o.Slots, Busy: s.Busy, Done: s.Done, Seen: time.Now().UTC(),
		},
	}
	select {
	case <-w.draining:
		content.Draining = true
	default:
	}
	if w.o.Trust != nil {
		content.Trusts = w.o.Trust.Keys()
	}
	content.Offer, content.Lacks = w.classes.offered()
	b, err := json.Marshal(&content)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fleet.Beat)
	defer cancel()
	_, err = w.place.Workers.Put(ctx, fleet.WorkerKey(w.o.ID), b)
	return err
}

// remove removes the card, so that others see at once that the worker has ended.
func (c *card) remove() {
	w := c.worker
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = w.place.Workers.Purge(ctx, fleet.WorkerKey(w.o.ID)) // otherwise it expires after CardLife
}
