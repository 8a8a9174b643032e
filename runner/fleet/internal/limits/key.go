package limits

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/provider"
)

// state is the common state of all limiters with one name:
//
//	         a call is rejected                the pause is over,
//	open ──────────────────────────> paused ─────────────────────> probing
//	  ^                               ^  ^    one process wins         │ │
//	  │                               │  └── its call is rejected ─────┘ │
//	  │                               └───── it makes no call            │
//	  └──────────────────────────────────── its call succeeds ───────────┘
//
// Each arrow is one write that compares the revision of the previous entry. The process that
// sends the probe renews its entry three times per lease. If it does not, a different process
// takes over as if the pause were over.
type state string

const (
	open    state = "open"
	paused  state = "paused"
	probing state = "probing"
)

// entry is the state of a limiter in the bucket. Its times are durations since the server stored
// it, because the clocks of processes differ.
type entry struct {
	State state `json:"state"`
	// Epoch is the number of rejections that made windows shrink.
	Epoch uint64 `json:"epoch"`
	// PauseMS is the pause in milliseconds.
	PauseMS int64 `json:"pause_ms,omitempty"`
	// By is the process that wrote the entry.
	By string `json:"by"`
}

// key is a shared limiter. Only the loop uses its fields, except news.
type key struct {
	sharing *sharing
	name    string // name in the bucket
	limiter *provider.Limiter

	entry    entry // latest known entry; the zero value means open
	revision uint64
	created  time.Time // by the server's clock
	retry    time.Time // time of the next try after the bucket did not answer

	news news // guarded by the mutex of sharing
}

// news are the reports of a limiter that the loop has not handled yet.
type news struct {
	joined    bool
	rejected  time.Time // end of the pause; zero if there was no rejection
	halved    bool      // the window shrank for that rejection
	succeeded bool
	asked     bool
}

// Rejected implements provider.Peer.
func (k *key) Rejected(d time.Duration, halved bool) {
	until := time.Now().Add(min(d, keepTime))
	k.post(func(n *news) {
		n.halved = n.halved || halved
		if until.After(n.rejected) {
			n.rejected = until
		}
		n.succeeded = false
	})
}

// Succeeded implements provider.Peer.
func (k *key) Succeeded() { k.post(func(n *news) { n.succeeded = true }) }

// Ask implements provider.Peer.
func (k *key) Ask() { k.post(func(n *news) { n.asked = true }) }

func (k *key) post(change func(*news)) {
	k.sharing.mu.Lock()
	defer k.sharing.mu.Unlock()
	change(&k.news)
	k.sharing.nudge()
}

// heard returns the news. They remain until handled removes them.
func (k *key) heard() news {
	k.sharing.mu.Lock()
	defer k.sharing.mu.Unlock()
	return k.news
}

func (k *key) handled(change func(*news)) {
	k.sharing.mu.Lock()
	defer k.sharing.mu.Unlock()
	change(&k.news)
}

// mine reports whether this process can send the probe.
func (k *key) mine() bool { return k.entry.State == probing && k.entry.By == k.sharing.id }

// left returns the rest of a duration that started when the entry was stored.
func (k *key) left(d time.Duration) time.Duration {
	age := time.Now().Add(k.sharing.offset).Sub(k.created)
	return d - max(0, min(d, age))
}

// pauseLeft returns the rest of the entry's pause.
func (k *key) pauseLeft() time.Duration {
	if k.entry.State != paused {
		return 0
	}
	return k.left(min(time.Duration(max(0, k.entry.PauseMS))*time.Millisecond, keepTime))
}

// accept stores an entry of the bucket as the latest one. If a different process wrote it,
// accept applies it to the limiter.
func (k *key) accept(e jetstream.KeyValueEntry) {
	var content entry
	if e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &content) != nil {
		content = entry{} // an entry of a different version is ignored
	}
	k.entry, k.revision, k.created = content, e.Revision(), e.Created()
	if content.By == k.sharing.id {
		return
	}
	k.handled(func(n *news) { n.asked = false })
	switch content.State {
	case paused, probing:
		k.limiter.Adopt(content.Epoch, k.pauseLeft())
	default:
		k.limiter.Resume()
	}
}

// settle does the pending work of the limiter, and returns when to call it again.
func (k *key) settle() time.Duration {
	const longest = time.Hour
	for range 8 { // other processes write at the same time
		n := k.heard()
		if wait := time.Until(k.retry); wait > 0 {
			if n.asked {
				k.grant() // without the bucket, each process decides alone
			}
			return wait
		}
		wait, err := k.step(n)
		switch {
		case err == nil && wait == 0:
		case err == nil:
			return min(wait, longest)
		case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			k.handled(func(n *news) { n.joined = true }) // read the other process's entry
		default:
			k.sharing.failed(err)
			k.retry = time.Now().Add(k.sharing.timeout)
		}
	}
	return 50 * time.Millisecond
}

// step does the next pending work of the limiter. It returns how long to wait; 0 means that more
// work can be pending.
func (k *key) step(n news) (time.Duration, error) {
	switch {
	case n.joined:
		return 0, k.read()
	case !n.rejected.IsZero():
		return 0, k.announce(n.rejected, n.halved)
	case n.succeeded:
		return 0, k.reopen()
	case n.asked:
		return k.probe()
	case k.mine():
		return k.renew()
	}
	return time.Hour, nil
}

// announce makes all processes pause, unless they pause for about as long anyway.
func (k *key) announce(until time.Time, halved bool) error {
	left, known := time.Until(until), k.pauseLeft()
	slack := max(100*time.Millisecond, known/10)
	epoch := k.entry.Epoch
	if left > 0 && (k.entry.State != paused || left > known+slack) {
		if halved && known == 0 {
			epoch++
		}
		if err := k.write(entry{State: paused, Epoch: epoch, PauseMS: left.Milliseconds() + 1}); err != nil {
			return err
		}
	}
	k.limiter.Announced(epoch)
	k.handled(func(n *news) {
		if n.rejected.Equal(until) {
			n.rejected, n.halved = time.Time{}, false
		}
	})
	return nil
}

// reopen lets all processes send again, unless there was a rejection since.
func (k *key) reopen() error {
	if k.entry.State == probing || k.entry.State == paused && k.pauseLeft() == 0 {
		if err := k.write(entry{State: open, Epoch: k.entry.Epoch}); err != nil {
			return err
		}
	}
	k.handled(func(n *news) { n.succeeded = false })
	return nil
}

// probe tries to become the process that sends the probe.
func (k *key) probe() (time.Duration, error) {
	switch {
	case k.pauseLeft() > 0:
		k.handled(func(n *news) { n.asked = false })
		k.limiter.Adopt(k.entry.Epoch, k.pauseLeft())
		return 0, nil
	case k.entry.State == probing && !k.mine() && k.left(k.sharing.lease) > 0:
		return k.left(k.sharing.lease), nil
	case k.entry.State == paused || k.entry.State == probing:
		if err := k.write(entry{State: probing, Epoch: k.entry.Epoch}); err != nil {
			return 0, err
		}
	}
	k.grant() // in the state open, only this process was rejected
	return 0, nil
}

func (k *key) grant() {
	k.handled(func(n *news) { n.asked = false })
	k.limiter.Grant()
}

// renew keeps the permission to send the probe while the probe is running, and gives it back
// otherwise.
func (k *key) renew() (time.Duration, error) {
	if !k.limiter.Probing() {
		return 0, k.write(entry{State: paused, Epoch: k.entry.Epoch})
	}
	if wait := k.left(k.sharing.lease / 3); wait > 0 {
		return wait, nil
	}
	return 0, k.write(entry{State: probing, Epoch: k.entry.Epoch})
}

// read reads the entry from the bucket.
func (k *key) read() error {
	ctx, cancel := context.WithTimeout(k.sharing.ctx, k.sharing.timeout)
	defer cancel()
	e, err := k.sharing.bucket.Get(ctx, k.name)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		k.entry, k.revision = entry{}, 0
	case err != nil:
		return err
	case e.Revision() > k.revision:
		k.accept(e)
	}
	k.sharing.answered()
	k.handled(func(n *news) { n.joined = false })
	return nil
}

// write replaces the entry. If a different process replaced it since it was read, the error is
// jetstream.ErrKeyRevisionMismatch.
func (k *key) write(e entry) error { return k.writeWithin(k.sharing.ctx, e) }

func (k *key) writeWithin(ctx context.Context, e entry) error {
	e.By = k.sharing.id
	content, err := json.Marshal(e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, k.sharing.timeout)
	defer cancel()
	created := time.Now().Add(k.sharing.offset)
	var revision uint64
	if k.revision == 0 {
		revision, err = k.sharing.bucket.Create(ctx, k.name, content)
		if errors.Is(err, jetstream.ErrKeyExists) {
			err = jetstream.ErrKeyRevisionMismatch
		}
	} else {
		revision, err = k.sharing.bucket.Update(ctx, k.name, content, k.revision)
	}
	if err != nil {
		return err
	}
	k.sharing.answered()
	k.entry, k.revision, k.created = e, revision, created
	return nil
}
