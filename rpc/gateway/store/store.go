// Package store keeps the state of the doors of waza serve across restarts, in the SQLite
// database serve.db of the state directory. Call [Open] first. The methods of [Store] are
// grouped by table, one file each.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// File is the name of the database in the state directory.
const File = "serve.db"

// Store is an open database. It is safe for concurrent use. The database stays intact when the
// process is killed at any moment, and keeps everything that a returned method has written. A
// goroutine writes assignments; Close waits for it.
type Store struct {
	path  string
	write *sql.DB // one connection, so that writers wait here instead of for the file's lock
	read  *sql.DB
	now   func() time.Time

	answers     answers
	assignments assignments
}

// Open opens the database in a directory, and creates both if they do not exist. Files have mode
// 0600. Open migrates older databases, and refuses databases of a newer program. The caller
// closes the Store.
func Open(dir string) (*Store, error) {
	s := &Store{path: filepath.Join(dir, File), now: time.Now}
	if err := s.open(dir); err != nil {
		_ = s.closePools()
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return s, nil
}

func (s *Store) open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// SQLite uses the mode of this file for its other files.
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(f.Chmod(0o600), f.Close())
	if err != nil {
		return err
	}
	ctx := context.Background()
	if s.write, err = s.pool(1, "_txlock=immediate"); err != nil {
		return err
	}
	if err := migrate(ctx, s.write); err != nil {
		return err
	}
	if s.read, err = s.pool(2, "_pragma=query_only(1)"); err != nil {
		return err
	}
	return errors.Join(s.answers.load(ctx, s.write, s.now()), s.assignments.load(ctx, s))
}

// pool opens connections. Synchronous NORMAL keeps the database intact and loses nothing when
// the process is killed. A power loss can lose the last writes. [Store.durably] executes writes
// that must survive a power loss.
func (s *Store) pool(connections int, setting string) (*sql.DB, error) {
	name := (&url.URL{Scheme: "file", Path: filepath.ToSlash(s.path)}).String()
	if !filepath.IsAbs(s.path) {
		name = (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(s.path)}).EscapedPath()}).String()
	}
	db, err := sql.Open("sqlite", name+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)"+
		"&_pragma=journal_size_limit(16777216)&"+setting)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// Close writes pending changes and closes the database.
func (s *Store) Close() error {
	err := s.assignments.close()
	return errors.Join(err, s.closePools())
}

func (s *Store) closePools() error {
	var err error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// beginner is a [*sql.DB] or a [*sql.Conn].
type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// transact calls do in a write transaction.
func transact(ctx context.Context, db beginner, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // returns an error after Commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// statement is an SQL statement with its arguments.
type statement struct {
	text string
	args []any
}

// run executes statements in one transaction.
func (s *Store) run(ctx context.Context, statements ...statement) error {
	return s.explain(transact(ctx, s.write, func(tx *sql.Tx) error { return execute(ctx, tx, statements) }))
}

func execute(ctx context.Context, tx *sql.Tx, statements []statement) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// durably is like run, but the effect of the statements also survives a power loss.
func (s *Store) durably(ctx context.Context, statements ...statement) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return s.explain(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = FULL"); err != nil {
		return s.explain(err)
	}
	err = transact(ctx, conn, func(tx *sql.Tx) error { return execute(ctx, tx, statements) })
	_, undo := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = NORMAL")
	return s.explain(errors.Join(err, undo))
}

// explain adds the path of the database to an error.
func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// query calls each for each row of a query, with the function that scans the row.
func (s *Store) query(ctx context.Context, db *sql.DB, each func(scan func(into ...any) error) error, query string, args ...any) error {
	return s.explain(eachRow(ctx, db, each, query, args...))
}

func eachRow(ctx context.Context, db *sql.DB, each func(scan func(into ...any) error) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// pairs returns the two columns of a query by the first one.
func (s *Store) pairs(ctx context.Context, query string, args ...any) (map[string]string, error) {
	values := map[string]string{}
	err := s.query(ctx, s.read, func(scan func(...any) error) error {
		var name, value string
		err := scan(&name, &value)
		values[name] = value
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return values, nil
}

// texts returns the only column of a query.
func (s *Store) texts(ctx context.Context, query string) (list []string, err error) {
	err = s.query(ctx, s.read, func(scan func(...any) error) error {
		var text string
		err := scan(&text)
		list = append(list, text)
		return err
	}, query)
	return list, err
}

// milliseconds returns a time in the format of the tables.
func milliseconds(t time.Time) int64 { return t.UnixMilli() }
