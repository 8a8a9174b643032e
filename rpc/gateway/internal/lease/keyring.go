package lease

import (
	"context"
	"errors"
	"sync"
)

// ErrEnded is the cause of calls that the other process cancelled.
var ErrEnded = errors.New("the request was cancelled")

// Keyring holds the calls and places of a process that uses them over a connection. The process
// names each with a key. A key has a call, a place or both. It owns a mutex and is safe for
// concurrent use. The zero value is empty.
type Keyring struct {
	// Most is the maximum number of keys; 0 means no limit.
	Most int

	mu   sync.Mutex // guards the field below
	keys map[string]*held
}

// held is the state of a key.
type held struct {
	cancel   context.CancelCauseFunc // cancels the active call; nil without one
	place    interface{ Release() }  // nil until one is reserved
	released bool                    // the process no longer uses this key
}

// Start records how to cancel a key's call. It returns false when the key already has a call, or
// too many keys exist.
func (k *Keyring) Start(key string, cancel context.CancelCauseFunc) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.keys[key]
	switch {
	case h == nil && k.Most > 0 && len(k.keys) >= k.Most:
		return false
	case h == nil:
		h = &held{}
		if k.keys == nil {
			k.keys = map[string]*held{}
		}
		k.keys[key] = h
	case h.cancel != nil || h.released:
		return false
	}
	h.cancel = cancel
	return true
}

// Hold gives a place to a key with an active call.
func (k *Keyring) Hold(key string, place interface{ Release() }) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[key].place = place
}

// Place returns the place of a key; nil when it has none.
func (k *Keyring) Place(key string) interface{ Release() } {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.keys[key]; h != nil {
		return h.place
	}
	return nil
}

// End ends a key's call. It removes the key unless a place remains.
func (k *Keyring) End(key string) {
	k.mu.Lock()
	h := k.keys[key]
	var released interface{ Release() }
	if h != nil {
		if h.cancel = nil; h.place == nil || h.released {
			delete(k.keys, key)
			released = h.place
		}
	}
	k.mu.Unlock()
	release(released)
}

// Cancel cancels a key's call.
func (k *Keyring) Cancel(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.keys[key]; h != nil && h.cancel != nil {
		h.cancel(ErrEnded)
	}
}

// Release releases the place of a key. An active call is cancelled and releases it at its end.
func (k *Keyring) Release(key string) {
	k.mu.Lock()
	h := k.keys[key]
	var released interface{ Release() }
	switch {
	case h == nil:
	case h.cancel != nil:
		h.released = true
		h.cancel(ErrEnded)
	default:
		delete(k.keys, key)
		released = h.place
	}
	k.mu.Unlock()
	release(released)
}

// Close releases all places. No call is active.
func (k *Keyring) Close() {
	k.mu.Lock()
	all := k.keys
	k.keys = nil
	k.mu.Unlock()
	for _, h := range all {
		release(h.place)
	}
}

func release(place interface{ Release() }) {
	if place != nil {
		place.Release()
	}
}
