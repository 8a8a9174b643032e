package store

import (
	"context"
	"database/sql"
)

// Runs accesses the tables of runs: the unfinished runs of the server, and the users of runs. It
// is safe for concurrent use.
type Runs struct{ store *Store }

// RunsOf returns the tables of a store, which the caller keeps open.
func RunsOf(s *Store) Runs { return Runs{s} }

// Own records that this server starts or resumes a run, so that it resumes the run after a
// restart. A user, unless empty, becomes the user of the run. The record survives a power loss.
func (r Runs) Own(ctx context.Context, runID, user string) error {
	// Runs recorded within the same millisecond keep their order.
	const own = "INSERT INTO owned_runs (run_id, owned_at) VALUES (?, max(?, (SELECT coalesce(max(owned_at), 0) + " +
		"1 FROM owned_runs))) ON CONFLICT DO NOTHING"
	now := milliseconds(r.store.now())
	if user == "" {
		return r.store.explain(r.store.durably(ctx, own, runID, now))
	}
	return r.store.explain(r.store.withDurability(ctx, func(conn *sql.Conn) error {
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // returns an error after Commit
		_, err = tx.ExecContext(ctx,
			"INSERT INTO run_users (run_id, user) VALUES (?, ?) ON CONFLICT DO UPDATE SET user = excluded.user",
			runID, user)
		if err == nil {
			_, err = tx.ExecContext(ctx, own, runID, now)
		}
		if err != nil {
			return err
		}
		return tx.Commit()
	}))
}

// Disown records that a run has ended, or belongs to another process. The run's user stays.
func (r Runs) Disown(ctx context.Context, runID string) error {
	_, err := r.store.write.ExecContext(ctx, "DELETE FROM owned_runs WHERE run_id = ?", runID)
	return r.store.explain(err)
}

// Forget removes runs that do not exist any more, and their users.
func (r Runs) Forget(ctx context.Context, runIDs ...string) error {
	return r.store.explain(transact(ctx, r.store.write, func(tx *sql.Tx) error {
		for _, id := range runIDs {
			for _, table := range []string{"owned_runs", "run_users"} {
				if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE run_id = ?", id); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// Owned returns the unfinished runs that this server has started, in the order of their starts.
func (r Runs) Owned(ctx context.Context) ([]string, error) {
	return r.store.texts(ctx, "SELECT run_id FROM owned_runs ORDER BY owned_at, run_id")
}

// Users returns the users of all runs that have one, by run id. All other runs belong to the
// owner of the server.
func (r Runs) Users(ctx context.Context) (map[string]string, error) {
	return r.store.pairs(ctx, "SELECT run_id, user FROM run_users")
}
