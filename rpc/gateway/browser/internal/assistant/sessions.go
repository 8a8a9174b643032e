package assistant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"waza/eval/text"
	"waza/rpc/gateway/store"
	"waza/runner/provider"
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

// Sessions are the conversations with assistants. They own the sessions and messages in the
// store, which they change only in jobs of the ledger, so that they need no mutex. Their methods
// are safe for concurrent use.
type Sessions struct {
	ctx      context.Context // context of reads
	store    Store
	lifetime time.Duration // from the last message, unless a session is archived
	ledger   *ledger
	exists   func(assistantID string) *Fault
}

// List returns the sessions of one assistant, or of all when its id is empty. Sessions with the
// newest messages come first. The error is a [*Fault].
func (s *Sessions) List(assistantID string, archived bool, limit, offset int) ([]store.Session, error) {
	if assistantID != "" {
		if f := s.exists(assistantID); f != nil {
			return nil, f
		}
	}
	all, err := s.store.Sessions(s.ctx, assistantID, archived, limit, offset)
	return all, s.ledger.unread(err)
}

// find finds a session. The error is a [*Fault].
func (s *Sessions) find(id string) (store.Session, error) {
	row, ok, err := s.store.Session(s.ctx, id)
	switch {
	case err != nil:
		return row, s.ledger.unread(err)
	case !ok:
		return row, &Fault{Code: CodeSessionNotFound, Message: "session not found", Data: map[string]any{"session_id": text.Clip(id, 100)}}
	}
	return row, nil
}

// Messages returns a session and its newest messages, oldest first. The error is a [*Fault].
func (s *Sessions) Messages(id string) (store.Session, []store.Message, error) {
	row, err := s.find(id)
	if err != nil {
		return row, nil, err
	}
	all, err := s.store.Messages(s.ctx, id, mostSessionMessages, mostSessionBytes)
	return row, all, s.ledger.unread(err)
}

// Archive keeps a session permanently, or lets it expire again. The error is a [*Fault].
func (s *Sessions) Archive(id string, archived bool) (store.Session, error) {
	return done(s.ledger, func() (store.Session, error) { return s.archive(id, archived) })
}

// archive is the job of Archive.
func (s *Sessions) archive(id string, archived bool) (store.Session, error) {
	row, err := s.find(id)
	if err != nil {
		return row, err
	}
	now := time.Now()
	row.ArchivedAt, row.ExpiresAt = time.Time{}, now.Add(s.lifetime)
	if archived {
		row.ArchivedAt = now
	}
	var full bool
	f := s.ledger.saved(func() error {
		err := s.store.Archive(s.ctx, row, row.ArchivedAt, row.ExpiresAt)
		if full = errors.Is(err, store.ErrTooManyArchived); full {
			return nil
		}
		return err
	})
	switch {
	case f != nil:
		return row, f
	case full:
		return row, &Fault{
			Code:    CodeInvalidMessage,
			Message: fmt.Sprintf("too many archived sessions: the maximum is %d per assistant", store.MostArchived),
		}
	}
	return row, nil
}

// open finds the session with an id, or creates one when the id is empty. Only jobs call it. The
// error is a [*Fault].
func (s *Sessions) open(id, assistantID string) (string, error) {
	if id != "" {
		row, err := s.find(id)
		if err == nil && row.AssistantID != assistantID {
			err = &Fault{Code: CodeSessionNotFound, Message: "the session belongs to a different assistant"}
		}
		return id, err
	}
	now := time.Now()
	row := store.Session{
		ID: uuid.NewString(), AssistantID: assistantID, CreatedAt: now, LastMessageAt: now, ExpiresAt: now.Add(s.lifetime),
	}
	if f := s.ledger.saved(func() error { return s.store.AddSession(s.ctx, row) }); f != nil {
		return "", f
	}
	return row.ID, nil
}

// add queues the write of a message. The ledger calls then after it. Close does not cancel it.
func (s *Sessions) add(id, assistantID, role, content string, now time.Time, then func(*Fault)) {
	row := store.Session{ID: id, AssistantID: assistantID}
	m := store.Message{ID: uuid.NewString(), Role: role, Content: content, CreatedAt: now}
	ctx := context.WithoutCancel(s.ctx)
	s.ledger.write(func() error { return s.store.AddMessage(ctx, row, m, now.Add(s.lifetime)) }, then)
}

// history returns the messages of a session in the form for models, with those whose write is
// queued.
func (s *Sessions) history(id string) (history []provider.Message) {
	messages, err := done(s.ledger, func() ([]store.Message, error) {
		return s.store.Messages(s.ctx, id, historyMessages, historyBytes)
	})
	_ = s.ledger.unread(err) // logged
	for _, m := range messages {
		if len(history) == 0 && m.Role != string(provider.User) {
			continue // conversations start with the user
		}
		history = append(history, provider.Message{Role: provider.Role(m.Role), Text: m.Content})
	}
	return history
}
