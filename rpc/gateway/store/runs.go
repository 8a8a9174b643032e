package store

import "context"

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
	list := []statement{{own, []any{runID, milliseconds(r.store.now())}}}
	if user != "" {
		list = append(list, statement{
			"INSERT INTO run_users (run_id, user) VALUES (?, ?) ON CONFLICT DO UPDATE SET user = excluded.user", []any{runID, user},
		})
	}
	return r.store.durably(ctx, list...)
}

// Disown records that a run has ended, or belongs to another process. The run's user stays.
func (r Runs) Disown(ctx context.Context, runID string) error {
	return r.store.run(ctx, statement{"DELETE FROM owned_runs WHERE run_id = ?", []any{runID}})
}

// Forget removes runs that do not exist any more, and their users.
func (r Runs) Forget(ctx context.Context, runIDs ...string) error {
	var list []statement
	for _, id := range runIDs {
		list = append(list, statement{"DELETE FROM owned_runs WHERE run_id = ?", []any{id}},
			statement{"DELETE FROM run_users WHERE run_id = ?", []any{id}})
	}
	return r.store.run(ctx, list...)
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
