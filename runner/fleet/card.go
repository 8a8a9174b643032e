package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"waza/runner/fleet/engine"
)

// card is the card of a run, which all workers watch: its state and its counts. It owns the state,
// and the goroutine that renews the card.
type card struct {
	*scope
	book *book

	mu    sync.Mutex // guards state
	state RunState
}

// become changes the state of the run for its workers. In the state Stopping they start no more
// trials, and in Over they end the running ones.
func (c *card) become(s RunState) {
	c.mu.Lock()
	was := c.state
	if was == s || was == Over {
		c.mu.Unlock()
		return
	}
	c.state = s
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
	defer cancel()
	if err := engine.Try(ctx, c.put); err != nil {
		c.log.Warn("workers not informed that the run ends", "run", c.spec.RunID, "error", err)
	}
}

// now returns the state of the run.
func (c *card) now() RunState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// keep renews the card, which shows that its owner lives. All workers watch it, so it is not
// renewed for each count. If the servers have stored nothing for some time, keep ends the run.
func (c *card) keep() {
	tick := time.NewTicker(min(Beat, c.checkAge))
	defer tick.Stop()
	var since time.Time // when storing first failed, while a server could be reached
	done := 0
	for {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(c.ctx, Beat)
		err := c.put(ctx)
		cancel()
		if err != nil {
			c.log.Debug("card of the run not renewed", "run", c.spec.RunID, "error", err)
		}
		full, before := c.conn.Repair(), done
		done = c.book.numbers().done
		switch {
		case err == nil && full == nil, done > before:
			since = time.Time{}
		case full == nil && !c.conn.Connected():
			since = time.Time{} // the connection reports it
		case since.IsZero():
			since = time.Now()
			c.spec.Logf("warning", "the fleet stores no messages: %v", cmp.Or(full, err))
		case time.Since(since) > storeChecks*c.checkAge:
			c.book.breakOff(fmt.Errorf("the fleet has stored no messages for %v (%w); make room or repair its servers, and resume the run",
				storeChecks*c.checkAge, cmp.Or(full, err)))
			return
		}
	}
}

// storeChecks is how many times the age of a checked order the servers can store nothing before
// the run ends.
const storeChecks = 6

func (c *card) put(ctx context.Context) error {
	n := c.book.numbers()
	card := RunCard{
		Protocol: Protocol, Duplicates: n.duplicates,
		RunStanding: RunStanding{
			Run: c.spec.RunID, State: c.now(), Suite: c.spec.Suite.Name, Host: host(), PID: os.Getpid(),
			Trials: c.spec.Trials, Waiting: n.waiting, Running: n.running, Done: n.done, Again: n.again, Refused: n.refused,
			Created: c.created, Seen: time.Now().UTC(),
		},
	}
	if c.signer != nil {
		card.Key = c.signer.Public()
	}
	b, err := json.Marshal(&card)
	if err != nil {
		return err
	}
	_, err = c.place.State.Put(ctx, RunKey(c.spec.RunID), b)
	return err
}
