package assistant

import (
	"errors"
	"fmt"
	"time"

	"waza/eval/text"
	"waza/rpc/gateway/store"
)

// Limits for the newest messages of a session that a model gets with a command: number and
// bytes.
const (
	historyMessages = 20
	historyBytes    = 200_000
)

// Limits for the newest messages of a session that clients get: number and bytes.
const (
	mostSessionMessages = 500
	mostSessionBytes    = 4 << 20
)

// Sessions returns the sessions of one assistant, or of all when its id is empty. Sessions with
// the newest messages come first. The error is a [*Fault].
func (a *Assistants) Sessions(assistantID string, archived bool, limit, offset int) ([]store.Session, error) {
	a.mu.Lock()
	if assistantID != "" {
		if _, f := a.findLocked(assistantID); f != nil {
			a.mu.Unlock()
			return nil, f
		}
	}
	a.mu.Unlock()
	all, err := a.o.Store.Sessions(a.ctx, assistantID, archived, limit, offset)
	return all, a.internal(err)
}

// internal returns the fault for an error of the store.
func (a *Assistants) internal(err error) error {
	if err == nil {
		return nil
	}
	a.o.Log.Error("reading from the store failed", "error", err)
	return &Fault{Code: CodeInternal, Message: "the server cannot read its database"}
}

// session finds a session. The error is a [*Fault].
func (a *Assistants) session(id string) (store.Session, error) {
	s, ok, err := a.o.Store.Session(a.ctx, id)
	switch {
	case err != nil:
		return s, a.internal(err)
	case !ok:
		return s, &Fault{Code: CodeSessionNotFound, Message: "session not found", Data: map[string]any{"session_id": text.Clip(id, 100)}}
	}
	return s, nil
}

// Messages returns a session and its newest messages, oldest first. The error is a [*Fault].
func (a *Assistants) Messages(id string) (store.Session, []store.Message, error) {
	s, err := a.session(id)
	if err != nil {
		return s, nil, err
	}
	all, err := a.o.Store.Messages(a.ctx, id, mostSessionMessages, mostSessionBytes)
	return s, all, a.internal(err)
}

// Archive keeps a session permanently, or lets it expire again. The error is a [*Fault].
func (a *Assistants) Archive(id string, archived bool) (store.Session, error) {
	var s store.Session
	err := a.ledger.do(func() (err error) {
		s, err = a.archive(id, archived)
		return err
	})
	return s, err
}

// archive is the job of Archive.
func (a *Assistants) archive(id string, archived bool) (store.Session, error) {
	s, err := a.session(id)
	if err != nil {
		return s, err
	}
	now := time.Now()
	s.ArchivedAt, s.ExpiresAt = time.Time{}, now.Add(a.o.SessionLifetime)
	if archived {
		s.ArchivedAt = now
	}
	var full bool
	f := a.ledger.saved(func() error {
		err := a.o.Store.Archive(a.ctx, s, s.ArchivedAt, s.ExpiresAt)
		if full = errors.Is(err, store.ErrTooManyArchived); full {
			return nil
		}
		return err
	})
	switch {
	case f != nil:
		return s, f
	case full:
		return s, &Fault{
			Code:    CodeInvalidMessage,
			Message: fmt.Sprintf("too many archived sessions: the maximum is %d per assistant", store.MostArchived),
		}
	}
	return s, nil
}
