package store

import (
	"context"
	"crypto/rand"
)

// Secret returns the secret with a name: 32 random bytes. It is created at first use and never
// changes.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	value := make([]byte, 32)
	_, _ = rand.Read(value) // never fails
	if err := s.durably(ctx, "INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, value); err != nil {
		return nil, s.explain(err)
	}
	err := s.read.QueryRowContext(ctx, "SELECT value FROM secrets WHERE name = ?", name).Scan(&value)
	return value, s.explain(err)
}
