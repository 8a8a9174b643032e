package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// mostTokens is the maximum number of valid pairs of tokens.
const mostTokens = 10_000

// TokenRow is a pair of tokens, including its refreshed tokens. Times have millisecond
// precision.
type TokenRow struct {
	ID, User, Role string
	Created        time.Time
	// Expires is when the last token of the pair expires.
	Expires time.Time
	// Revoked is zero while the pair is valid.
	Revoked time.Time
}

// Tokens accesses the table of tokens. It is safe for concurrent use.
type Tokens struct{ store *Store }

// TokensOf returns the table of a store, which the caller keeps open.
func TokensOf(s *Store) Tokens { return Tokens{s} }

// Save stores a new pair of tokens until it expires, and removes expired pairs. It fails when
// 10,000 pairs are valid. The record survives a power loss.
func (t Tokens) Save(ctx context.Context, row TokenRow) error {
	now := milliseconds(t.store.now())
	err := t.store.run(ctx, statement{"DELETE FROM tokens WHERE expires_at <= ?", []any{now}},
		statement{"DELETE FROM revoked_tokens WHERE expires_at <= ?", []any{now}})
	if err != nil {
		return err
	}
	var count int
	if err := t.store.read.QueryRowContext(ctx, "SELECT count(*) FROM tokens").Scan(&count); err != nil {
		return t.store.explain(err)
	}
	if count >= mostTokens {
		return fmt.Errorf("too many tokens: %d have not expired; wait until some do", count)
	}
	return t.store.durably(ctx, statement{
		"INSERT INTO tokens (id, user, role, created_at, expires_at, revoked_at) VALUES (?, ?, ?, ?, ?, 0)",
		[]any{row.ID, row.User, row.Role, milliseconds(row.Created), milliseconds(row.Expires)},
	})
}

// Extend records that a refreshed token of a pair expires later. It does not change revoked
// pairs.
func (t Tokens) Extend(ctx context.Context, id string, expires time.Time) error {
	return t.store.run(ctx, statement{
		"UPDATE tokens SET expires_at = max(expires_at, ?) WHERE id = ? AND revoked_at = 0", []any{milliseconds(expires), id},
	})
}

const tokenColumns = "SELECT id, user, role, created_at, expires_at, revoked_at FROM tokens "

// Get returns the pair with an id; ok is false when it does not exist.
func (t Tokens) Get(ctx context.Context, id string) (row TokenRow, ok bool, err error) {
	row, err = scanToken(t.store.read.QueryRowContext(ctx, tokenColumns+"WHERE id = ?", id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return row, false, nil
	}
	return row, err == nil, t.store.explain(err)
}

// List returns the pairs that have not expired, including revoked ones, oldest first.
func (t Tokens) List(ctx context.Context) ([]TokenRow, error) {
	var list []TokenRow
	err := t.store.query(ctx, t.store.read, func(scan func(...any) error) error {
		row, err := scanToken(scan)
		list = append(list, row)
		return err
	}, tokenColumns+"WHERE expires_at > ? ORDER BY created_at, id", milliseconds(t.store.now()))
	return list, err
}

func scanToken(scan func(...any) error) (row TokenRow, err error) {
	var created, expires, revoked int64
	if err := scan(&row.ID, &row.User, &row.Role, &created, &expires, &revoked); err != nil {
		return row, err
	}
	row.Created, row.Expires = time.UnixMilli(created), time.UnixMilli(expires)
	if revoked > 0 {
		row.Revoked = time.UnixMilli(revoked)
	}
	return row, nil
}

// RevokePair revokes all tokens of a pair. It returns false when the pair does not exist. The
// record survives a power loss.
func (t Tokens) RevokePair(ctx context.Context, id string) (bool, error) {
	if _, ok, err := t.Get(ctx, id); err != nil || !ok {
		return false, err
	}
	return true, t.store.durably(ctx, statement{
		"UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at = 0", []any{milliseconds(t.store.now()), id},
	})
}

// Revoke revokes a single token that expires at the given time at the latest. The record
// survives a power loss.
func (t Tokens) Revoke(ctx context.Context, id string, expires time.Time) error {
	return t.store.durably(ctx, statement{
		"INSERT INTO revoked_tokens (id, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING", []any{id, milliseconds(expires)},
	})
}

// IsRevoked reports whether Revoke was called for a token.
func (t Tokens) IsRevoked(ctx context.Context, id string) (bool, error) {
	var n int
	err := t.store.read.QueryRowContext(ctx, "SELECT count(*) FROM revoked_tokens WHERE id = ?", id).Scan(&n)
	return n > 0, t.store.explain(err)
}

// Revoked returns the ids of all revoked pairs and tokens.
func (t Tokens) Revoked(ctx context.Context) (map[string]bool, error) {
	list, err := t.store.texts(ctx, "SELECT id FROM tokens WHERE revoked_at > 0 UNION ALL SELECT id FROM revoked_tokens")
	ids := make(map[string]bool, len(list))
	for _, id := range list {
		ids[id] = true
	}
	return ids, err
}
