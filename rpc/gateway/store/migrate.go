package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// migrations are files NNNN_NAME.sql. Number N migrates the database from version N-1 to version
// N in one transaction. A released file never changes.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate migrates a database to the newest version.
func migrate(ctx context.Context, db *sql.DB) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	version, err := versionOf(ctx, db)
	if err != nil {
		return err
	}
	if version > len(names) {
		return fmt.Errorf("database version %d is newer than the supported version %d: update waza, or set WAZA_STATE to another directory",
			version, len(names))
	}
	for i, name := range names { // fs.Glob sorts them
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return fmt.Errorf("migration %s must have the number %04d", name, i+1)
		}
		if i < version {
			continue
		}
		if err := step(ctx, db, name, i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func versionOf(ctx context.Context, db queryer) (version int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// step migrates by one version. Another process may have done that meanwhile.
func step(ctx context.Context, db *sql.DB, name string, from int) error {
	statements, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	return transact(ctx, db, func(tx *sql.Tx) error {
		version, err := versionOf(ctx, tx)
		if err != nil || version > from {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(statements)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", from+1))
		return err
	})
}
