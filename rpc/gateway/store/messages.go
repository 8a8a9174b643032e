package store

import "context"

// Messages accesses the table of the router's messages to clients. It is safe for concurrent
// use.
type Messages struct{ store *Store }

// MessagesOf returns the table of a store, which the caller keeps open.
func MessagesOf(s *Store) Messages { return Messages{s} }

// Save stores a message under its id. An existing message keeps its place.
func (m Messages) Save(ctx context.Context, id, message string) error {
	return m.store.run(ctx, statement{
		"INSERT INTO messages (id, message) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET message = excluded.message",
		[]any{id, message},
	})
}

// Forget removes messages if they exist.
func (m Messages) Forget(ctx context.Context, ids ...string) error {
	var list []statement
	for _, id := range ids {
		list = append(list, statement{"DELETE FROM messages WHERE id = ?", []any{id}})
	}
	return m.store.run(ctx, list...)
}

// List returns all messages, oldest first.
func (m Messages) List(ctx context.Context) ([]string, error) {
	return m.store.texts(ctx, "SELECT message FROM messages ORDER BY number")
}
