package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Limits for the data of assistants.
const (
	keptSessions  = 1000 // per assistant, not archived
	keptMessages  = 500  // per session
	keptCommands  = 1000 // finished commands of all assistants
	keptAssistant = 100  // deleted assistants
)

// MostArchived is the maximum number of archived sessions per assistant.
const MostArchived = 1000

// ErrTooManyArchived is returned when an assistant already has [MostArchived] archived sessions.
var ErrTooManyArchived = errors.New("too many archived sessions of this assistant")

// Assistants accesses the tables of browser assistants, their sessions and commands. It is safe
// for concurrent use.
type Assistants struct{ store *Store }

// AssistantsOf returns the tables of a store, which the caller keeps open.
func AssistantsOf(s *Store) Assistants { return Assistants{s} }

// Assistant is a row of assistants. A zero time means that the event has not happened.
type Assistant struct {
	ID, Name, Instructions, Model               string
	Capabilities                                []string
	Active                                      bool
	CreatedAt, UpdatedAt, LastActiveAt, Deleted time.Time
}

// Session is a conversation with an assistant.
type Session struct {
	ID, AssistantID                                 string
	CreatedAt, LastMessageAt, ArchivedAt, ExpiresAt time.Time
	Messages                                        int // only read
}

// Message is a turn of a session.
type Message struct {
	ID, Role, Content string
	CreatedAt         time.Time
}

// Command is a command that a client gave to an assistant.
type Command struct {
	Number                                  int64 // set by AddCommand
	ID, ExtensionID, AssistantID, SessionID string
	Text                                    string
	Stream                                  bool
	Status, Result, Error                   string
	QueuedAt, StartedAt, EndedAt            time.Time
	Reported                                bool
}

// unix returns a time in the format of the assistants' tables: milliseconds, or 0 for the zero
// time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return milliseconds(t)
}

func fromUnix(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (a Assistants) transact(ctx context.Context, do func(tx *sql.Tx) error) error {
	return a.store.explain(transact(ctx, a.store.write, do))
}

// All returns the assistants that are not deleted, oldest first.
func (a Assistants) All(ctx context.Context) ([]Assistant, error) {
	var all []Assistant
	err := a.store.query(ctx, a.store.read, func(scan func(...any) error) error {
		var r Assistant
		var capabilities string
		var created, updated, active int64
		err := scan(&r.ID, &r.Name, &r.Instructions, &capabilities, &r.Model, &r.Active, &created, &updated, &active)
		if err == nil {
			err = json.Unmarshal([]byte(capabilities), &r.Capabilities)
		}
		r.CreatedAt, r.UpdatedAt, r.LastActiveAt = fromUnix(created), fromUnix(updated), fromUnix(active)
		all = append(all, r)
		return err
	}, "SELECT id, name, instructions, capabilities, model, active, created_at, updated_at, last_active_at"+
		" FROM assistants WHERE deleted_at = 0 ORDER BY created_at, id")
	return all, err
}

// NameKey returns a key that is equal for names that the database treats as equal.
func NameKey(name string) string { return strings.ToLower(name) }

// Add adds an inactive assistant. It fails when another assistant that is not deleted has the
// same [NameKey].
func (a Assistants) Add(ctx context.Context, r Assistant) error {
	capabilities, err := json.Marshal(r.Capabilities)
	if err != nil {
		return err
	}
	return a.store.run(ctx, statement{
		"INSERT INTO assistants VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, 0, 0)",
		[]any{r.ID, r.Name, NameKey(r.Name), r.Instructions, string(capabilities), r.Model, unix(r.CreatedAt), unix(r.UpdatedAt)},
	})
}

// Activate makes an assistant the only active one. With an empty id, it makes all inactive.
func (a Assistants) Activate(ctx context.Context, id string, at time.Time) error {
	return a.store.run(ctx,
		statement{"UPDATE assistants SET active = 0, updated_at = ? WHERE active = 1 AND id <> ?", []any{unix(at), id}},
		statement{
			"UPDATE assistants SET active = 1, updated_at = ?, last_active_at = ? WHERE id = ? AND deleted_at = 0",
			[]any{unix(at), unix(at), id},
		})
}

// Delete marks an assistant and its sessions as deleted, and removes those that were deleted
// long ago.
func (a Assistants) Delete(ctx context.Context, id string, at time.Time) error {
	return a.store.run(ctx,
		statement{"UPDATE assistants SET active = 0, updated_at = ?1, deleted_at = ?1 WHERE id = ?2 AND deleted_at = 0", []any{unix(at), id}},
		statement{"UPDATE assistant_sessions SET deleted_at = ? WHERE assistant_id = ? AND deleted_at = 0", []any{unix(at), id}},
		statement{
			"DELETE FROM assistants WHERE deleted_at > 0 AND id NOT IN (SELECT id FROM assistants WHERE deleted_at > 0 " +
				"ORDER BY deleted_at DESC LIMIT ?)",
			[]any{keptAssistant},
		},
		statement{text: "DELETE FROM assistant_sessions WHERE assistant_id NOT IN (SELECT id FROM assistants)"},
		statement{text: orphans})
}

const orphans = "DELETE FROM assistant_messages WHERE session_id NOT IN (SELECT id FROM assistant_sessions)"

// AddSession adds a session. When an assistant has more than 1,000 sessions that are not
// archived, those with the oldest messages are deleted.
func (a Assistants) AddSession(ctx context.Context, s Session) error {
	return a.transact(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO assistant_sessions VALUES (?, ?, ?, ?, 0, ?, 0)",
			s.ID, s.AssistantID, unix(s.CreatedAt), unix(s.LastMessageAt), unix(s.ExpiresAt)); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, "DELETE FROM assistant_sessions WHERE id IN (SELECT id FROM assistant_sessions"+
			" WHERE assistant_id = ? AND archived_at = 0 ORDER BY last_message_at DESC LIMIT -1 OFFSET ?)", s.AssistantID, keptSessions)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, orphans)
		return err
	})
}

const sessionColumns = "id, assistant_id, created_at, last_message_at, archived_at, expires_at," +
	" (SELECT count(*) FROM assistant_messages WHERE session_id = assistant_sessions.id)"

func scanSession(scan func(...any) error) (Session, error) {
	var s Session
	var created, last, archived, expires int64
	err := scan(&s.ID, &s.AssistantID, &created, &last, &archived, &expires, &s.Messages)
	s.CreatedAt, s.LastMessageAt, s.ArchivedAt, s.ExpiresAt = fromUnix(created), fromUnix(last), fromUnix(archived), fromUnix(expires)
	return s, err
}

// Session returns a session; false when it does not exist, has expired or was deleted.
func (a Assistants) Session(ctx context.Context, id string) (Session, bool, error) {
	row := a.store.write.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM assistant_sessions WHERE id = ? AND deleted_at = 0"+
		" AND (archived_at > 0 OR expires_at > ?)", id, unix(a.store.now()))
	s, err := scanSession(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return Session{}, false, nil
	}
	return s, err == nil, a.store.explain(err)
}

// Sessions returns the sessions of one assistant, or of all when its id is empty. Sessions with
// the newest messages come first.
func (a Assistants) Sessions(ctx context.Context, assistantID string, archived bool, limit, offset int) ([]Session, error) {
	all := []Session{}
	err := a.store.query(ctx, a.store.read, func(scan func(...any) error) error {
		row, err := scanSession(scan)
		all = append(all, row)
		return err
	}, "SELECT "+sessionColumns+" FROM assistant_sessions WHERE deleted_at = 0"+
		" AND (?1 = '' OR assistant_id = ?1) AND (archived_at > 0 AND ?2 OR archived_at = 0 AND expires_at > ?3)"+
		" ORDER BY last_message_at DESC, created_at DESC, id LIMIT ?4 OFFSET ?5", assistantID, archived, unix(a.store.now()), limit, offset)
	return all, err
}

// Archive archives a session or, when at is zero, lets it expire. It returns
// [ErrTooManyArchived] when the limit is reached.
func (a Assistants) Archive(ctx context.Context, s Session, at, expires time.Time) error {
	return a.transact(ctx, func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx,
			"SELECT count(*) FROM assistant_sessions WHERE assistant_id = ? AND archived_at > 0 AND id <> ?",
			s.AssistantID, s.ID).Scan(&n); err != nil {
			return err
		}
		if n >= MostArchived && !at.IsZero() {
			return ErrTooManyArchived
		}
		_, err := tx.ExecContext(ctx, "UPDATE assistant_sessions SET archived_at = ?, expires_at = ? WHERE id = ?", unix(at), unix(expires), s.ID)
		return err
	})
}

// AddMessage adds a message to a session, extends the session's expiry, and records that its
// assistant was active. The newest 500 messages of a session are kept.
func (a Assistants) AddMessage(ctx context.Context, s Session, m Message, expires time.Time) error {
	return a.store.run(ctx,
		statement{
			"INSERT INTO assistant_messages (id, session_id, role, content, created_at) VALUES (?, ?, ?, ?, ?)",
			[]any{m.ID, s.ID, m.Role, m.Content, unix(m.CreatedAt)},
		},
		statement{
			"DELETE FROM assistant_messages WHERE session_id = ?1 AND number <= (SELECT number FROM assistant_messages " +
				"WHERE session_id = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
			[]any{s.ID, keptMessages},
		},
		statement{
			"UPDATE assistant_sessions SET last_message_at = ?, expires_at = ? WHERE id = ?",
			[]any{unix(m.CreatedAt), unix(expires), s.ID},
		},
		statement{"UPDATE assistants SET last_active_at = ? WHERE id = ?", []any{unix(m.CreatedAt), s.AssistantID}})
}

// Messages returns the newest messages of a session, oldest first. Their number is at most most,
// and their size at most mostBytes, except that the newest message is always included.
func (a Assistants) Messages(ctx context.Context, sessionID string, most, mostBytes int) ([]Message, error) {
	all := []Message{}
	err := a.store.query(ctx, a.store.write, func(scan func(...any) error) error {
		var m Message
		var created int64
		err := scan(&m.ID, &m.Role, &m.Content, &created)
		m.CreatedAt = fromUnix(created)
		all = append(all, m)
		return err
	}, "SELECT id, role, content, created_at FROM (SELECT *,"+
		" row_number() OVER newest AS place, sum(length(CAST(content AS BLOB))) OVER newest AS size"+
		" FROM assistant_messages WHERE session_id = ? WINDOW newest AS (ORDER BY number DESC))"+
		" WHERE place <= ? AND (size <= ? OR place = 1) ORDER BY number", sessionID, most, mostBytes)
	return all, err
}

// AddCommand adds a command and sets its number.
func (a Assistants) AddCommand(ctx context.Context, c *Command) error {
	result, err := a.store.write.ExecContext(ctx, "INSERT INTO assistant_commands"+
		" (id, extension_id, assistant_id, session_id, text, stream, status, result, error, queued_at, started_at, ended_at, reported)"+
		" VALUES (?, ?, ?, ?, ?, ?, ?, '', '', ?, 0, 0, 0)",
		c.ID, c.ExtensionID, c.AssistantID, c.SessionID, c.Text, c.Stream, c.Status, unix(c.QueuedAt))
	if err == nil {
		c.Number, err = result.LastInsertId()
	}
	return a.store.explain(err)
}

// UpdateCommand writes the state of a command. The newest 1,000 finished commands are kept.
func (a Assistants) UpdateCommand(ctx context.Context, c *Command) error {
	update := statement{
		"UPDATE assistant_commands SET status = ?, result = ?, error = ?, started_at = ?, ended_at = ?, reported = ? WHERE number = ?",
		[]any{c.Status, c.Result, c.Error, unix(c.StartedAt), unix(c.EndedAt), c.Reported, c.Number},
	}
	if c.EndedAt.IsZero() {
		return a.store.run(ctx, update)
	}
	return a.store.run(ctx, update, statement{
		"DELETE FROM assistant_commands WHERE ended_at > 0 AND number <= ? - ?", []any{c.Number, keptCommands},
	})
}

const commandColumns = "SELECT number, id, extension_id, assistant_id, session_id, text, stream, status, " +
	"result, error, queued_at, started_at, ended_at, reported FROM assistant_commands"

func scanCommand(scan func(...any) error) (*Command, error) {
	c := &Command{}
	var queued, started, ended int64
	err := scan(&c.Number, &c.ID, &c.ExtensionID, &c.AssistantID, &c.SessionID, &c.Text, &c.Stream, &c.Status,
		&c.Result, &c.Error, &queued, &started, &ended, &c.Reported)
	c.QueuedAt, c.StartedAt, c.EndedAt = fromUnix(queued), fromUnix(started), fromUnix(ended)
	return c, err
}

// OpenCommands returns the commands that have not ended, and those whose end was not reported to
// a client. They are in the order of their arrival.
func (a Assistants) OpenCommands(ctx context.Context) ([]*Command, error) {
	var all []*Command
	err := a.store.query(ctx, a.store.read, func(scan func(...any) error) error {
		c, err := scanCommand(scan)
		all = append(all, c)
		return err
	}, commandColumns+" WHERE ended_at = 0 OR reported = 0 ORDER BY number")
	return all, err
}

// EndedCommand returns the newest finished command with an id. It prefers commands of the given
// extension; nil means that none exists.
func (a Assistants) EndedCommand(ctx context.Context, id, extensionID string) (*Command, error) {
	row := a.store.write.QueryRowContext(ctx,
		commandColumns+" WHERE id = ? AND ended_at > 0 ORDER BY extension_id = ? DESC, number DESC LIMIT 1", id,
		extensionID)
	c, err := scanCommand(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return c, a.store.explain(err)
}

// Sweep deletes expired sessions, and sessions that were deleted before the given time, with
// their messages. It returns their number.
func (a Assistants) Sweep(ctx context.Context, deletedBefore time.Time) (n int64, err error) {
	err = a.transact(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM assistant_sessions WHERE deleted_at = 0 AND archived_at = 0 AND expires_at <= ?"+
			" OR deleted_at > 0 AND deleted_at <= ?", unix(a.store.now()), unix(deletedBefore))
		if err != nil {
			return err
		}
		if n, err = result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM assistants WHERE deleted_at > 0 AND deleted_at <= ?", unix(deletedBefore)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, orphans)
		return err
	})
	return n, err
}
