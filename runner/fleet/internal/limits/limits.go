// Package limits lets the processes of a fleet respect the rate limits of model providers
// together. When a call of one process is rejected, all processes pause, and afterwards one of
// them sends a probe. Call [Share].
package limits

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/pause"
	"waza/runner/provider"
)

const (
	// mostEntryBytes is the maximum size of the entry of a limiter; typical entries have about
	// 100 bytes.
	mostEntryBytes = 1024
	// mostBytes is the maximum size of the bucket. Each limiter has one entry.
	mostBytes = 4 << 20
	// keepTime is how long an unchanged entry is kept. A longer pause of a provider does not
	// apply to processes that start later.
	keepTime = 24 * time.Hour
)

// Bucket returns the configuration of the bucket of a team. Its name is WAZA_TEAM_LIMITS, with
// the team in upper case.
func Bucket(team string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:       "WAZA_" + strings.ToUpper(team) + "_LIMITS",
		Description:  "pauses requested by model providers",
		History:      1,
		MaxValueSize: mostEntryBytes,
		MaxBytes:     mostBytes,
		TTL:          keepTime,
		Storage:      jetstream.FileStorage,
		Replicas:     replicas,
	}
}

// Options configure [Share]. The zero value is valid.
type Options struct {
	Log *slog.Logger // nil discards log messages
	// Lease is how long the process that sends the probe can be silent before a different one
	// takes over; 0 means 15 s.
	Lease time.Duration
	// Timeout is how long the bucket can take to answer before the limiters of this process
	// decide alone; 0 means 2 s.
	Timeout time.Duration
}

// Share makes limits act as one with the limits of all processes that share the same bucket. It
// uses the bucket when a provider rejects a call and when the pause is over, not for each call.
// While the bucket cannot be reached, each limiter acts alone.
//
// The caller calls stop, which returns when the goroutines have ended. Share returns an error if
// the bucket cannot be read, or limits is shared already.
func Share(ctx context.Context, limits *provider.Limits, bucket jetstream.KeyValue, options Options) (stop func(), err error) {
	s := &sharing{
		bucket: bucket, id: uuid.NewString(), keys: map[string]*key{}, wake: make(chan struct{}, 1),
		log: options.Log, lease: cmp.Or(options.Lease, 15*time.Second), timeout: cmp.Or(options.Timeout, 2*time.Second),
	}
	s.log = cmp.Or(s.log, slog.New(slog.DiscardHandler))
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.readClock(ctx); err != nil {
		s.cancel()
		return nil, fmt.Errorf("bucket %s: %w", bucket.Bucket(), err)
	}
	watcher, err := s.watch(ctx)
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("watch bucket %s: %w", bucket.Bucket(), err)
	}
	leave, ok := limits.Share(s)
	if !ok {
		_ = watcher.Stop()
		s.cancel()
		return nil, errors.New("the limits of this process are shared already")
	}
	var ended sync.WaitGroup
	ended.Go(func() { s.loop(watcher) })
	return sync.OnceFunc(func() {
		leave()
		s.cancel()
		ended.Wait()
	}), nil
}

// sharing connects the limits of a process with those of others. It has one goroutine,
// [sharing.loop], which Share's stop ends.
type sharing struct {
	bucket         jetstream.KeyValue
	id             string // identifies this process
	log            *slog.Logger
	lease, timeout time.Duration
	ctx            context.Context // ends with stop
	cancel         context.CancelFunc
	wake           chan struct{} // has a buffer of one

	mu   sync.Mutex // guards keys and the news of each
	keys map[string]*key

	// Of the loop:
	offset time.Duration // the server's clock, less this process's
	silent bool          // the last request to the bucket got no answer
}

// Join implements provider.Sharing.
func (s *sharing) Join(name string, limiter *provider.Limiter) provider.Peer {
	hash := sha256.Sum256([]byte(name))
	k := &key{sharing: s, name: hex.EncodeToString(hash[:16]), limiter: limiter}
	k.news.joined = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k.name] = k
	s.nudge()
	return k
}

// nudge wakes the loop.
func (s *sharing) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// watch starts to watch the entries of all limiters.
func (s *sharing) watch(ctx context.Context) (jetstream.KeyWatcher, error) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	return s.bucket.WatchAll(s.ctx, jetstream.UpdatesOnly())
}

// readClock measures the difference between the server's clock and this process's. Pauses and
// leases start at the time at which the server stored them.
func (s *sharing) readClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	status, err := s.bucket.Status(ctx)
	if err != nil {
		return err
	}
	if b, ok := status.(*jetstream.KeyValueBucketStatus); ok {
		s.offset = time.Until(b.StreamInfo().TimeStamp)
	}
	return nil
}

// loop does all work that needs the bucket.
func (s *sharing) loop(watcher jetstream.KeyWatcher) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			_ = watcher.Stop()
			s.release()
			return
		case update, ok := <-watcher.Updates():
			if !ok {
				if watcher = s.watchAgain(); watcher == nil {
					s.release()
					return
				}
				continue
			}
			s.note(update)
		case <-s.wake:
		case <-timer.C:
		}
		timer.Reset(s.settle())
	}
}

// watchAgain replaces a watch that the server ended. It returns nil at the end of the process.
func (s *sharing) watchAgain() jetstream.KeyWatcher {
	for {
		if pause.About(s.ctx, time.Second) != nil {
			return nil
		}
		watcher, err := s.watch(s.ctx)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, k := range s.keys {
				k.news.joined = true // reads its entry again
			}
			s.nudge()
			return watcher
		}
		s.failed(err)
	}
}

// note handles an entry that a process wrote.
func (s *sharing) note(update jetstream.KeyValueEntry) {
	if update == nil {
		return
	}
	s.mu.Lock()
	k := s.keys[update.Key()]
	s.mu.Unlock()
	if k == nil || update.Revision() <= k.revision {
		return
	}
	// An entry from the future shows that the clocks changed.
	s.offset = max(s.offset, time.Until(update.Created()))
	k.accept(update)
}

// settle does the pending work of all limiters, and returns when to call it again.
func (s *sharing) settle() time.Duration {
	s.mu.Lock()
	keys := slices.Collect(maps.Values(s.keys))
	s.mu.Unlock()
	next := time.Hour
	for _, k := range keys {
		next = min(next, k.settle())
	}
	return max(next, time.Millisecond)
}

// release gives back the permissions of this process.
func (s *sharing) release() {
	for _, k := range s.keys {
		if k.mine() {
			_ = k.writeWithin(context.WithoutCancel(s.ctx), entry{State: paused, Epoch: k.entry.Epoch})
		}
	}
}

// failed logs once that the bucket does not answer.
func (s *sharing) failed(err error) {
	if !s.silent && s.ctx.Err() == nil {
		s.silent = true
		s.log.Warn("cannot share the rate limits of providers, continuing alone", "error", err.Error())
	}
}

func (s *sharing) answered() {
	if s.silent {
		s.silent = false
		s.log.Info("sharing the rate limits of providers again")
	}
}
