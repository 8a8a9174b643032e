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
	err := s.durably(ctx, statement{"INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", []any{name, value}})
	if err != nil {
		return nil, err
	}
	err = s.read.QueryRowContext(ctx, "SELECT value FROM secrets WHERE name = ?", name).Scan(&value)
	return value, s.explain(err)
}
