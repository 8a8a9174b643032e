package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clocked returns a store with a clock that the test sets.
func clocked(t *testing.T) (*Store, *time.Time) {
	now := time.UnixMilli(1_700_000_000_000)
	s := open(t, t.TempDir())
	s.now = func() time.Time { return now }
	return s, &now
}

func TestAssistants(t *testing.T) {
	t.Parallel()
	s, now := clocked(t)
	a, ctx := AssistantsOf(s), t.Context()
	one := Assistant{
		ID: "1", Name: "Bob", Instructions: "Be Bob.", Capabilities: []string{"scroll"}, Model: "m",
		CreatedAt: *now, UpdatedAt: *now,
	}
	two := Assistant{ID: "2", Name: "Ann", Capabilities: []string{}, CreatedAt: now.Add(1e9), UpdatedAt: now.Add(1e9)}
	require.NoError(t, a.Add(ctx, one))
	require.NoError(t, a.Add(ctx, two))
	require.Error(t, a.Add(ctx, Assistant{ID: "3", Name: "bOB"}), "the name is taken")
	for _, id := range []string{"1", "2"} { // the second one becomes active instead of the first
		require.NoError(t, a.Activate(ctx, id, now.Add(2e9)))
	}
	all, err := a.All(ctx)
	require.NoError(t, err)
	one.UpdatedAt, one.LastActiveAt = now.Add(2e9), now.Add(2e9)
	two.Active, two.UpdatedAt, two.LastActiveAt = true, now.Add(2e9), now.Add(2e9)
	require.Equal(t, []Assistant{one, two}, all)

	require.NoError(t, a.AddSession(ctx,
		Session{ID: "s", AssistantID: "2", CreatedAt: *now, LastMessageAt: *now, ExpiresAt: now.Add(time.Hour)}))
	require.NoError(t, a.Delete(ctx, "2", now.Add(3e9)))
	_, ok, err := a.Session(ctx, "s")
	require.NoError(t, err)
	require.False(t, ok, "the session is deleted with its assistant")
	require.NoError(t, a.Add(ctx, Assistant{ID: "4", Name: "ANN"}), "the name is free again")
	all, err = a.All(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.False(t, all[0].Active || all[1].Active)
}

func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	s, now := clocked(t)
	a, ctx := AssistantsOf(s), t.Context()
	require.NoError(t, a.Add(ctx, Assistant{ID: "1", Name: "Bob", Capabilities: []string{"scroll"}, CreatedAt: *now}))
	for _, id := range []string{"expires", "archived", "used"} {
		require.NoError(t, a.AddSession(ctx,
			Session{ID: id, AssistantID: "1", CreatedAt: *now, LastMessageAt: *now, ExpiresAt: now.Add(time.Hour)}))
		require.NoError(t, a.AddMessage(ctx, Session{ID: id, AssistantID: "1"},
			Message{ID: "m", Role: "user", Content: id, CreatedAt: *now}, now.Add(time.Hour)))
	}
	require.NoError(t, a.Archive(ctx, Session{ID: "archived", AssistantID: "1"}, *now, time.Time{}))
	require.NoError(t, a.AddMessage(ctx, Session{ID: "used", AssistantID: "1"},
		Message{ID: "m2", Role: "assistant", Content: "x", CreatedAt: now.Add(30 * time.Minute)},
		now.Add(90*time.Minute)))
	start := *now
	*now = start.Add(time.Hour)
	_, ok, err := a.Session(ctx, "expires")
	require.NoError(t, err)
	require.False(t, ok)
	n, err := a.Sweep(ctx, start)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	left, err := a.Sessions(ctx, "", true, 10, 0)
	require.NoError(t, err)
	require.Len(t, left, 2)
	require.Equal(t, Session{
		ID: "used", AssistantID: "1", Messages: 2, CreatedAt: start, LastMessageAt: start.Add(30 * time.Minute),
		ExpiresAt: start.Add(90 * time.Minute),
	}, left[0])
	require.Equal(t, "archived", left[1].ID)
	gone, err := a.Messages(ctx, "expires", 10, 1000)
	require.NoError(t, err)
	require.Empty(t, gone)

	// A session that is no longer archived expires.
	require.NoError(t, a.Archive(ctx, left[1], time.Time{}, now.Add(time.Hour)))
	*now = now.Add(2 * time.Hour)
	n, err = a.Sweep(ctx, start)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
}

// All data that clients can add has limits.
func TestAttackAssistantsGrow(t *testing.T) {
	t.Parallel()
	s, now := clocked(t)
	a, ctx := AssistantsOf(s), t.Context()
	require.NoError(t, a.Add(ctx, Assistant{ID: "1", Name: "Bob", Capabilities: []string{"scroll"}, CreatedAt: *now}))
	// SQL inserts most rows, because it is faster.
	fill := func(n int, insert string) {
		_, err := s.write.Exec("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) "+insert, n, unix(*now))
		require.NoError(t, err)
	}
	fill(keptSessions+45, "INSERT INTO assistant_sessions SELECT i, '1', ?2 + i * 1000, ?2 + i * 1000, 0, ?2 + 9000000, 0 FROM n")
	for i := keptSessions + 45; i < keptSessions+50; i++ {
		at := now.Add(time.Duration(i) * time.Second)
		require.NoError(t, a.AddSession(ctx,
			Session{ID: fmt.Sprint(i), AssistantID: "1", CreatedAt: at, LastMessageAt: at, ExpiresAt: at.Add(time.Hour)}))
	}
	all, err := a.Sessions(ctx, "1", true, 10_000, 0)
	require.NoError(t, err)
	require.Len(t, all, keptSessions)
	require.Equal(t, "50", all[len(all)-1].ID, "the oldest are gone")
	fill(keptMessages+45, "INSERT INTO assistant_messages (id, session_id, role, content, created_at) SELECT i, '60', 'user', '', ?2 FROM n")
	for i := keptMessages + 45; i < keptMessages+50; i++ {
		require.NoError(t, a.AddMessage(ctx, Session{ID: "60", AssistantID: "1"},
			Message{ID: fmt.Sprint(i), Role: "user", CreatedAt: *now}, now.Add(time.Hour)))
	}
	messages, err := a.Messages(ctx, "60", 10_000, 1000)
	require.NoError(t, err)
	require.Len(t, messages, keptMessages)
	require.Equal(t, "50", messages[0].ID)
	fill(keptCommands+45, "INSERT INTO assistant_commands (id, extension_id, assistant_id, session_id, text, "+
		"stream, status, result, error, queued_at, started_at, ended_at, reported)"+
		" SELECT i, '', '1', '', '', 0, 'completed', '', '', ?2, 0, CASE i WHEN 0 THEN 0 ELSE ?2 END, 1 FROM n")
	for i := keptCommands + 45; i < keptCommands+50; i++ {
		c := &Command{ID: fmt.Sprint(i), AssistantID: "1", Status: "queued", QueuedAt: *now}
		require.NoError(t, a.AddCommand(ctx, c))
		c.Status, c.EndedAt, c.Reported = "completed", *now, true
		require.NoError(t, a.UpdateCommand(ctx, c))
	}
	ended, err := a.EndedCommand(ctx, "2", "")
	require.NoError(t, err)
	require.Nil(t, ended)
	ended, err = a.EndedCommand(ctx, "100", "")
	require.NoError(t, err)
	require.Equal(t, "100", ended.ID)
	left, err := a.OpenCommands(ctx)
	require.NoError(t, err)
	require.Len(t, left, 1, "unfinished commands stay")
	fill(keptAssistant+15, "INSERT INTO assistants SELECT 'y' || i, 'y' || i, 'y' || i, '', '[]', '', 0, ?2, ?2, 0, ?2 + i FROM n")
	for i := range 5 {
		id := fmt.Sprint("x", i)
		require.NoError(t, a.Add(ctx, Assistant{ID: id, Name: id, Capabilities: []string{}, CreatedAt: *now}))
		require.NoError(t, a.Delete(ctx, id, now.Add(time.Duration(i)*time.Second)))
	}
	var n int
	require.NoError(t, s.read.QueryRow("SELECT count(*) FROM assistants").Scan(&n))
	require.Equal(t, keptAssistant+1, n)
	fill(MostArchived-1, "INSERT INTO assistant_sessions SELECT 'a' || i, '1', ?2, ?2, ?2, 0, 0 FROM n")
	require.NoError(t, a.Archive(ctx, all[0], *now, time.Time{}))
	require.NoError(t, a.Archive(ctx, all[0], *now, time.Time{}), "again")
	extra := Session{ID: "extra", AssistantID: "1", CreatedAt: *now, LastMessageAt: *now, ExpiresAt: now.Add(time.Hour)}
	require.NoError(t, a.AddSession(ctx, extra))
	require.ErrorIs(t, a.Archive(ctx, extra, *now, time.Time{}), ErrTooManyArchived)
}

// Commands are returned in order with all their fields.
func TestCommands(t *testing.T) {
	t.Parallel()
	s, now := clocked(t)
	a, ctx := AssistantsOf(s), t.Context()
	var want []*Command
	for i := range 3 {
		c := &Command{
			ID: "same", ExtensionID: fmt.Sprint(i), AssistantID: "1", SessionID: "s", Text: "text", Stream: i == 1,
			Status: "queued", QueuedAt: *now,
		}
		require.NoError(t, a.AddCommand(ctx, c))
		want = append(want, c)
	}
	want[1].Status, want[1].StartedAt = "executing", now.Add(time.Second)
	require.NoError(t, a.UpdateCommand(ctx, want[1]))
	all, err := a.OpenCommands(ctx)
	require.NoError(t, err)
	require.Equal(t, want, all)
	for i, c := range want {
		c.Status, c.Result, c.EndedAt, c.Reported = "completed", "r", now.Add(time.Minute), i != 2
		require.NoError(t, a.UpdateCommand(ctx, c))
	}
	all, err = a.OpenCommands(ctx)
	require.NoError(t, err)
	require.Equal(t, want[2:], all, "its end was not reported yet")
	for extension, i := range map[string]int{"0": 0, "1": 1, "other": 2} {
		c, err := a.EndedCommand(ctx, "same", extension)
		require.NoError(t, err)
		require.Equal(t, want[i], c)
	}
}

// Of a session with long messages, only the newest are returned.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	s, now := clocked(t)
	a, ctx := AssistantsOf(s), t.Context()
	require.NoError(t, a.Add(ctx, Assistant{ID: "1", Name: "Bob", Capabilities: []string{"scroll"}, CreatedAt: *now}))
	require.NoError(t, a.AddSession(ctx,
		Session{ID: "s", AssistantID: "1", CreatedAt: *now, LastMessageAt: *now, ExpiresAt: now.Add(time.Hour)}))
	for i := range 5 {
		require.NoError(t, a.AddMessage(ctx, Session{ID: "s", AssistantID: "1"},
			Message{ID: fmt.Sprint(i), Role: "user", Content: "äääää", CreatedAt: *now}, now.Add(time.Hour)))
	}
	for bytes, want := range map[int][]string{50: {"0", "1", "2", "3", "4"}, 39: {"2", "3", "4"}, 30: {"2", "3", "4"}, 1: {"4"}} {
		all, err := a.Messages(ctx, "s", 10, bytes)
		require.NoError(t, err)
		var ids []string
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		require.Equal(t, want, ids, bytes)
	}
	all, err := a.Messages(ctx, "s", 2, 50)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "3", all[0].ID)
}
