package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		writeForEver(dir)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a ?#%41 b")
	s := open(t, dir)
	require.NoError(t, s.SaveAnswer(t.Context(), "x", "c", []byte("1")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "database, log and index")
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), e.Name())
	}
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, db := range []*sql.DB{s.read, s.write} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "busy_timeout": "10000"} {
			var got string
			require.NoError(t, db.QueryRow("PRAGMA "+pragma).Scan(&got))
			require.Equal(t, want, got, pragma)
		}
	}
	_, err := s.Secret(t.Context(), "x")
	require.NoError(t, err)
	var synchronous int
	require.NoError(t, s.write.QueryRow("PRAGMA synchronous").Scan(&synchronous))
	require.Equal(t, 1, synchronous, "as before")
	_, err = s.read.Exec("DELETE FROM answers")
	require.Error(t, err)
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	_, err := s.write.Exec("PRAGMA user_version = 99")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = Open(dir)
	require.ErrorContains(t, err, filepath.Join(dir, File)+": database version 99 is newer than the supported version ")
	require.ErrorContains(t, err, "update waza")
}

func TestFileThatIsNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, File), bytes.Repeat([]byte("no database "), 1000), 0o600))
	_, err := Open(dir)
	require.ErrorContains(t, err, "not a database")
}

// Servers that start at the same time migrate once.
func TestOpenedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secrets := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			s, err := Open(dir)
			if err == nil {
				secrets[i], _ = s.Secret(context.Background(), "x")
				s.Close()
			}
		})
	}
	wg.Wait()
	for _, secret := range secrets {
		require.Len(t, secret, 32)
		require.Equal(t, secrets[0], secret)
	}
}

func TestSecretsStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	a, err := s.Secret(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, a, 32)
	b, err := s.Secret(t.Context(), "b")
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	require.NoError(t, s.Close())
	again, err := open(t, dir).Secret(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, a, again)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	ctx := t.Context()
	require.NoError(t, s.SaveAnswer(ctx, "x", "client", []byte(`{"first":1}`)))
	require.NoError(t, s.SaveAnswer(ctx, "x", "other", []byte(`{"second":2}`)))
	require.NoError(t, s.SaveAnswer(ctx, "empty", "client", nil))
	require.NoError(t, s.Close())

	s = open(t, dir)
	require.Equal(t, int64(2), s.answers.count)
	require.Equal(t, int64(11), s.answers.bytes)
	for range 2 {
		client, answer, ok, err := s.Answer(ctx, "x")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "client", client)
		require.Equal(t, `{"first":1}`, string(answer))
	}
	kept, err := s.Answers(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x": "client", "empty": "client"}, kept)
	for _, want := range []bool{true, false} {
		_, _, ok, err := s.TakeAnswer(ctx, "x")
		require.NoError(t, err)
		require.Equal(t, want, ok)
	}
	_, _, ok, err := s.TakeAnswer(ctx, "unknown")
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, int64(1), s.answers.count)
	require.Equal(t, int64(0), s.answers.bytes)
}

func TestOldestAnswersGoFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ count, bytes int64 }{{3, 1 << 20}, {100, 30}} {
		s := open(t, t.TempDir())
		s.answers.mostCount, s.answers.mostAll = c.count, c.bytes
		for i := range 10 {
			require.NoError(t, s.SaveAnswer(t.Context(), fmt.Sprint(i), "c", []byte("ten bytes!")))
		}
		for i := range 10 {
			_, _, ok, err := s.Answer(t.Context(), fmt.Sprint(i))
			require.NoError(t, err)
			require.Equal(t, i >= 7, ok, i)
		}
		require.Equal(t, int64(3), s.answers.count)
		require.Equal(t, int64(30), s.answers.bytes)
	}
}

func TestAnswersAge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.SaveAnswer(t.Context(), "x", "c", []byte("1")))
	s.now = func() time.Time { return time.Now().Add(answerAge + time.Minute) }
	_, _, ok, err := s.Answer(t.Context(), "x")
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.answers.load(t.Context(), s.write, s.now()))
	require.Zero(t, s.answers.count)
}

// rows counts the rows of the table of assignments.
func rows(t *testing.T, s *Store) (n int) {
	t.Helper()
	require.NoError(t, s.write.QueryRow("SELECT count(*) FROM assignments").Scan(&n))
	return n
}

func TestAssignmentsAreWrittenLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir)
		s.Assign("short", "c")
		s.Assign("long", "c")
		time.Sleep(writeBehind - time.Millisecond)
		s.Unassign("short")
		require.Zero(t, rows(t, s))
		s.Assign("late", "c")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, rows(t, s))
		time.Sleep(writeBehind)
		synctest.Wait()
		require.Equal(t, 2, rows(t, s))
		s.Assign("long", "other")
		s.Unassign("late")
		time.Sleep(writeBehind)
		synctest.Wait()
		require.Equal(t, 1, rows(t, s))
		s.Assign("last", "c")
		require.NoError(t, s.Close())

		s = open(t, dir)
		got, err := s.Assignments(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"long": "other", "last": "c"}, got)
		s.Unassign("long")
		s.Unassign("last")
		require.NoError(t, s.Close())
		require.Zero(t, rows(t, open(t, dir)))
	})
}

// Failed writes are repeated.
func TestAssignmentsAreWrittenAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir)
		_, err := s.write.Exec("ALTER TABLE assignments RENAME TO away")
		require.NoError(t, err)
		s.Assign("x", "c")
		time.Sleep(writeBehind)
		synctest.Wait()
		_, err = s.Assignments(t.Context())
		require.ErrorContains(t, err, "no such table")
		_, err = s.write.Exec("ALTER TABLE away RENAME TO assignments")
		require.NoError(t, err)
		time.Sleep(writeBehind)
		synctest.Wait()
		_, err = s.Assignments(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, rows(t, s))
	})
}

// A client's description of itself is not stored, because clients can invent ever new ids.
func TestNothingOfAgentsIsKept(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var tables int
	require.NoError(t, s.read.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_master WHERE name LIKE '%agents%'").Scan(&tables))
	require.Zero(t, tables)
}

// The order is that of the starts, even within a millisecond.
func TestOwnedRuns(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	r := RunsOf(s)
	s.now = func() time.Time { return time.UnixMilli(1_000_000) }
	for _, id := range []string{"b", "a", "b", "c", "a1"} {
		require.NoError(t, r.Own(t.Context(), id, map[string]string{"c": "ann", "a": "bob"}[id]))
	}
	require.NoError(t, r.Disown(t.Context(), "a"))
	require.NoError(t, r.Disown(t.Context(), "unknown"))
	ids, err := r.Owned(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c", "a1"}, ids)
	users, err := r.Users(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"c": "ann", "a": "bob"}, users)
	require.NoError(t, r.Forget(t.Context(), "c", "unknown"))
	users, err = r.Users(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "bob"}, users)
}
