package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"

	"waza/runner/executor/remote"
)

// archive is what a hub keeps across restarts. It owns the hub's store; without one, it keeps
// nothing. Its methods are safe for concurrent use. Only assign and unassign do not block.
type archive struct {
	store Store // nil without one
	log   *slog.Logger
}

// memory is what the previous process left.
type memory struct {
	secret []byte            // for the ids of requests
	kept   map[string]string // clients of the stored answers, by evaluation
	early  map[string]string // clients that have an evaluation
}

// recall returns what the previous process left.
func (a *archive) recall(ctx context.Context) (m memory, err error) {
	m = memory{kept: map[string]string{}, early: map[string]string{}}
	if a.store == nil {
		m.secret = make([]byte, 32)
		_, _ = rand.Read(m.secret) // never fails
		return m, nil
	}
	if m.secret, err = a.store.Secret(ctx, "evaluations"); err != nil {
		return m, fmt.Errorf("secret of evaluation ids: %w", err)
	}
	if kept, err := a.store.Answers(ctx); err != nil {
		return m, fmt.Errorf("stored answers: %w", err)
	} else if kept != nil {
		m.kept = kept
	}
	if early, err := a.store.Assignments(ctx); err != nil {
		return m, fmt.Errorf("assignments: %w", err)
	} else if early != nil {
		m.early = early
	}
	return m, nil
}

// assign records which client has an evaluation, until unassign.
func (a *archive) assign(id, clientID string) {
	if a.store != nil {
		a.store.Assign(id, clientID)
	}
}

func (a *archive) unassign(id string) {
	if a.store != nil {
		a.store.Unassign(id)
	}
}

// save stores an answer, and ends the assignment of its evaluation. It returns false when the
// answer is not stored.
func (a *archive) save(id string, answer *remote.Answer) bool {
	if a.store == nil {
		return false
	}
	data, err := json.Marshal(answer)
	if err == nil {
		err = a.store.SaveAnswer(context.Background(), id, answer.ClientID, data)
	}
	a.store.Unassign(id)
	if err != nil {
		a.log.Error("answer could not be stored", "evaluation", id, "error", err)
	}
	return err == nil
}

// take returns a stored answer and removes it; nil when none is stored, or it is lost.
func (a *archive) take(ctx context.Context, id string) *remote.Answer {
	clientID, data, ok, err := a.store.TakeAnswer(context.WithoutCancel(ctx), id)
	answer := &remote.Answer{}
	if ok && err == nil {
		err = json.Unmarshal(data, answer)
	}
	if err != nil {
		a.log.Error("stored answer lost", "evaluation", id, "error", err)
	}
	if err != nil || !ok {
		return nil
	}
	answer.ClientID = clientID
	return answer
}

// drop removes a stored answer that another one has preceded.
func (a *archive) drop(id string) {
	if _, _, _, err := a.store.TakeAnswer(context.Background(), id); err != nil {
		a.log.Error("stored answer could not be removed", "evaluation", id, "error", err)
	}
}
