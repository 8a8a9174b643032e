package store

import "context"

// Own notes that this server has started a run and resumes it after a restart. It
// survives a loss of power.
func (s *Store) Own(ctx context.Context, runID string) error {
	return s.explain(s.durably(ctx, "INSERT INTO owned_runs (run_id, owned_at) VALUES (?, ?) ON CONFLICT DO NOTHING", runID, milliseconds(s.now())))
}

// Disown notes that a run has ended, or belongs to another process.
func (s *Store) Disown(ctx context.Context, runID string) error {
	_, err := s.write.ExecContext(ctx, "DELETE FROM owned_runs WHERE run_id = ?", runID)
	return s.explain(err)
}

// Owned lists the runs that this server has started and that have not ended, oldest first.
func (s *Store) Owned(ctx context.Context) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT run_id FROM owned_runs ORDER BY owned_at, run_id")
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, s.explain(err)
		}
		ids = append(ids, id)
	}
	return ids, s.explain(rows.Err())
}
