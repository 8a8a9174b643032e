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
	// assignmentAge is how long an unfinished assignment is kept.
	assignmentAge = 7 * 24 * time.Hour
	// mostAssignments is how many assignments are loaded when the store is opened; the newest.
	mostAssignments = 100_000
)

// assignments records which client works on which evaluation. The table is written with a delay:
// evaluations that are answered within a second, like most, are never written.
type assignments struct {
	store *Store

	writing sync.Mutex // held while the table is written; lock it before mu

	mu      sync.Mutex           // guards the fields below
	current map[string]*assigned // by id
	table   map[string]string    // contents of the table: clients by id, "" after a failed write
	dirty   map[string]bool      // ids of rows that may differ from current
	timer   *time.Timer          // nil when no row is dirty
	closed  bool
	failed  error // error of the last write
}

type assigned struct {
	clientID string
	at       time.Time
}

// Assign records that a client works on an evaluation. The record is written after a second
// unless Unassign is called before; a crash within that second loses it. Assign does not block.
func (s *Store) Assign(id, clientID string) {
	a := &s.assignments
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current[id] = &assigned{clientID, s.now()}
	a.touchLocked(id)
}

// Unassign records that no client works on the evaluation any more. It does not block.
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

// Assignments returns the assigned clients by evaluation id, including those from before the
// last restart. Assignments older than 7 days are removed at the next start. The caller owns the
// map.
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

// touchLocked schedules the write of a row in a second.
func (a *assignments) touchLocked(id string) {
	a.dirty[id] = true
	if a.timer == nil && !a.closed {
		a.timer = time.AfterFunc(writeBehind, func() { _ = a.flush(false) }) // flush keeps its error
	}
}

// load reads the table.
func (a *assignments) load(ctx context.Context, s *Store) error {
	a.store = s
	a.current, a.table, a.dirty = map[string]*assigned{}, map[string]string{}, map[string]bool{}
	if _, err := s.write.ExecContext(ctx, "DELETE FROM assignments WHERE assigned_at <= ?",
		milliseconds(s.now().Add(-assignmentAge))); err != nil {
		return err
	}
	return eachRow(ctx, s.read, func(scan func(...any) error) error {
		var id, clientID string
		var at int64
		err := scan(&id, &clientID, &at)
		a.current[id], a.table[id] = &assigned{clientID, time.UnixMilli(at)}, clientID
		return err
	}, "SELECT id, client_id, assigned_at FROM assignments ORDER BY assigned_at DESC LIMIT ?", mostAssignments)
}

// flush writes changes that are older than a second, or all changes when the store closes.
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

// changesLocked returns the rows to set and to remove, and marks them as written.
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
	var list []statement
	for id, row := range set {
		list = append(list, statement{
			"INSERT INTO assignments (id, client_id, assigned_at) VALUES (?, ?, ?)" +
				" ON CONFLICT DO UPDATE SET client_id = excluded.client_id, assigned_at = excluded.assigned_at",
			[]any{id, row.clientID, milliseconds(row.at)},
		})
	}
	for _, id := range removed {
		list = append(list, statement{"DELETE FROM assignments WHERE id = ?", []any{id}})
	}
	ctx := context.Background()
	return transact(ctx, a.store.write, func(tx *sql.Tx) error { return execute(ctx, tx, list) })
}

// close writes all remaining changes.
func (a *assignments) close() error {
	if a.store == nil {
		return nil // the table was never loaded
	}
	if err := a.flush(true); err != nil {
		return errors.Join(errors.New("assignments could not be written"), a.store.explain(err))
	}
	return nil
}
