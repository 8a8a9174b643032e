package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// Limits for stored answers without a waiting caller. The oldest are removed first.
const (
	mostAnswers     = 10_000
	mostAnswerBytes = 256 << 20
	answerAge       = 7 * 24 * time.Hour
)

// answers counts the rows of the table of answers.
type answers struct {
	mu                 sync.Mutex // guards the fields below; held while the table is written
	count, bytes       int64
	mostCount, mostAll int64 // 0 means the constant; tests set lower values
}

// SaveAnswer stores a client's answer to the evaluation id when no caller waits for it. The
// first answer to an id stays; later ones are ignored. The store keeps at most 10,000 answers
// and 256 MiB, for 7 days.
func (s *Store) SaveAnswer(ctx context.Context, id, clientID string, answer []byte) error {
	a := &s.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer == nil {
		answer = []byte{}
	}
	result, err := s.write.ExecContext(ctx, "INSERT INTO answers (id, client_id, answer, bytes, saved_at) VALUES "+
		"(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		id, clientID, answer, len(answer), milliseconds(s.now()))
	if err != nil {
		return s.explain(err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return s.explain(err)
	}
	a.count++
	a.bytes += int64(len(answer))
	return s.explain(a.pruneLocked(ctx, s.write))
}

// Answer returns the stored answer to an evaluation; ok is false when none exists.
func (s *Store) Answer(ctx context.Context, id string) (clientID string, answer []byte, ok bool, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT client_id, answer FROM answers WHERE id = ? AND saved_at > ?", id,
		oldestAnswer(s.now())).Scan(&clientID,
		&answer)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, false, nil
	}
	return clientID, answer, err == nil, s.explain(err)
}

// Answers returns the clients with stored answers, by evaluation id. The caller owns the map.
func (s *Store) Answers(ctx context.Context) (map[string]string, error) {
	return s.pairs(ctx, "SELECT id, client_id FROM answers WHERE saved_at > ?", oldestAnswer(s.now()))
}

// TakeAnswer returns the stored answer to an evaluation and removes it. Of several callers, only
// one gets it.
func (s *Store) TakeAnswer(ctx context.Context, id string) (clientID string, answer []byte, ok bool, err error) {
	if _, _, ok, err := s.Answer(ctx, id); err != nil || !ok { // no write is needed
		return "", nil, false, err
	}
	a := &s.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	err = s.write.QueryRowContext(ctx, "DELETE FROM answers WHERE id = ? RETURNING client_id, answer", id).Scan(&clientID, &answer)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, false, nil
	}
	if err != nil {
		return "", nil, false, s.explain(err)
	}
	a.count--
	a.bytes -= int64(len(answer))
	return clientID, answer, true, nil
}

// oldestAnswer returns the time before which answers are expired.
func oldestAnswer(now time.Time) int64 { return milliseconds(now.Add(-answerAge)) }

// load removes expired answers and counts the rest.
func (a *answers) load(ctx context.Context, db *sql.DB, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mostCount, a.mostAll = mostAnswers, mostAnswerBytes
	if _, err := db.ExecContext(ctx, "DELETE FROM answers WHERE saved_at <= ?", oldestAnswer(now)); err != nil {
		return err
	}
	return db.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(bytes), 0) FROM answers").Scan(&a.count, &a.bytes)
}

// pruneLocked removes the oldest answers until the rest is within the limits.
func (a *answers) pruneLocked(ctx context.Context, db *sql.DB) error {
	for a.count > a.mostCount || a.bytes > a.mostAll {
		var bytes int64
		err := db.QueryRowContext(ctx, "DELETE FROM answers WHERE number = (SELECT min(number) FROM answers) RETURNING bytes").Scan(&bytes)
		if errors.Is(err, sql.ErrNoRows) {
			a.count, a.bytes = 0, 0
			return nil
		}
		if err != nil {
			return err
		}
		a.count--
		a.bytes -= bytes
	}
	return nil
}
