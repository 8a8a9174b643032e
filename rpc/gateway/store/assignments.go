package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

const (
	// writeBehind is how long an assignment stays in memory before it is written.
	writeBehind = time.Second
	// assignmentAge is how long an assignment is remembered that nobody has ended.
	assignmentAge = 7 * 24 * time.Hour
	// mostAssignments is how many are read when the store is opened; the newest.
	mostAssignments = 100_000
)

// assignments says which client has which evaluation. The table is behind: what is
// answered within a second, as most is, is never written.
type assignments struct {
	store *Store

	writing sync.Mutex // held while the table is written; locked before mu

	mu      sync.Mutex           // guards the fields below
	current map[string]*assigned // by id
	table   map[string]string    // what the table has: clients by id, "" after a write that failed
	dirty   map[string]bool      // ids whose row may differ from current
	timer   *time.Timer          // nil when nothing is dirty
	closed  bool
	failed  error // of the last write
}

type assigned struct {
	clientID string
	at       time.Time
}

// Assign notes that a client has an evaluation. It is written after a second, unless
// Unassign comes first; a crash within that second loses it. It does not block.
func (s *Store) Assign(id, clientID string) {
	a := &s.assignments
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current[id] = &assigned{clientID, s.now()}
	a.touchLocked(id)
}

// Unassign notes that no client has the evaluation any more. It does not block.
func (s *Store) Unassign(id string) {
	a := &s.assignments
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.current, id)
	if _, written := a.table[id]; written {
		a.touchLocked(id)
	} else {
		delete(a.dirty, id)
	}
}

// Assignments are the clients by the ids of the evaluations they have, those of before
// the last restart included. After 7 days an assignment is forgotten at the next start. The
// caller owns the map.
func (s *Store) Assignments(context.Context) (map[string]string, error) {
	a := &s.assignments
	a.mu.Lock()
	defer a.mu.Unlock()
	clients := make(map[string]string, len(a.current))
	for id, row := range a.current {
		clients[id] = row.clientID
	}
	return clients, s.explain(a.failed)
}

// touchLocked has a row looked at in a second.
func (a *assignments) touchLocked(id string) {
	a.dirty[id] = true
	if a.timer == nil && !a.closed {
		a.timer = time.AfterFunc(writeBehind, func() { _ = a.flush(false) }) // it keeps its error
	}
}

// load reads the table.
func (a *assignments) load(ctx context.Context, s *Store) error {
	a.store = s
	a.current, a.table, a.dirty = map[string]*assigned{}, map[string]string{}, map[string]bool{}
	if _, err := s.write.ExecContext(ctx, "DELETE FROM assignments WHERE assigned_at <= ?", milliseconds(s.now().Add(-assignmentAge))); err != nil {
		return err
	}
	rows, err := s.read.QueryContext(ctx, "SELECT id, client_id, assigned_at FROM assignments ORDER BY assigned_at DESC LIMIT ?", mostAssignments)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, clientID string
		var at int64
		if err := rows.Scan(&id, &clientID, &at); err != nil {
			return err
		}
		a.current[id] = &assigned{clientID, time.UnixMilli(at)}
		a.table[id] = clientID
	}
	return rows.Err()
}

// flush writes what is older than a second; all of it when the store closes.
func (a *assignments) flush(closing bool) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = closing
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	set, removed := a.changesLocked(closing)
	a.mu.Unlock()

	err := a.save(set, removed)

	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = err
	for id := range set {
		if err != nil {
			a.table[id], a.dirty[id] = "", true
		}
	}
	for _, id := range removed {
		if err != nil {
			a.table[id], a.dirty[id] = "", true
		} else if _, again := a.current[id]; !again {
			delete(a.table, id)
		} else {
			a.table[id], a.dirty[id] = "", true
		}
	}
	for id := range a.dirty {
		a.touchLocked(id)
		break
	}
	return err
}

// changesLocked lists the rows to set and to remove. The table counts as having them.
func (a *assignments) changesLocked(all bool) (set map[string]assigned, removed []string) {
	set = map[string]assigned{}
	now := a.store.now()
	for id := range a.dirty {
		row, ok := a.current[id]
		clientID, written := a.table[id]
		switch {
		case ok && !all && now.Sub(row.at) < writeBehind:
			continue
		case ok && (!written || clientID != row.clientID):
			set[id] = *row
			a.table[id] = row.clientID
		case !ok && written:
			removed = append(removed, id)
		}
		delete(a.dirty, id)
	}
	return set, removed
}

// save writes changes in one transaction.
func (a *assignments) save(set map[string]assigned, removed []string) error {
	if len(set) == 0 && len(removed) == 0 {
		return nil
	}
	ctx := context.Background()
	return transact(ctx, a.store.write, func(tx *sql.Tx) error {
		for id, row := range set {
			if _, err := tx.ExecContext(ctx, "INSERT INTO assignments (id, client_id, assigned_at) VALUES (?, ?, ?)"+
				" ON CONFLICT DO UPDATE SET client_id = excluded.client_id, assigned_at = excluded.assigned_at", id, row.clientID, milliseconds(row.at)); err != nil {
				return err
			}
		}
		for _, id := range removed {
			if _, err := tx.ExecContext(ctx, "DELETE FROM assignments WHERE id = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
}

// close writes all that is left.
func (a *assignments) close() error {
	if a.store == nil {
		return nil // it was never opened
	}
	if err := a.flush(true); err != nil {
		return errors.Join(errors.New("assignments were not written"), a.store.explain(err))
	}
	return nil
}
