-- Browser assistants. Deleted ones stay as long as sessions do.
CREATE TABLE assistants (
	id             TEXT PRIMARY KEY,
	name           TEXT NOT NULL,
	name_key       TEXT NOT NULL, -- the name in lower case
	instructions   TEXT NOT NULL,
	capabilities   TEXT NOT NULL, -- a JSON array
	model          TEXT NOT NULL, -- empty when it is that of the server
	active         INTEGER NOT NULL,
	created_at     INTEGER NOT NULL, -- Unix milliseconds, as all times below
	updated_at     INTEGER NOT NULL,
	last_active_at INTEGER NOT NULL, -- 0 when never
	deleted_at     INTEGER NOT NULL  -- 0 when it is not
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX assistants_name ON assistants (name_key) WHERE deleted_at = 0;
CREATE UNIQUE INDEX assistants_active ON assistants (active) WHERE active = 1;

-- Their conversations.
CREATE TABLE assistant_sessions (
	id              TEXT PRIMARY KEY,
	assistant_id    TEXT NOT NULL,
	created_at      INTEGER NOT NULL,
	last_message_at INTEGER NOT NULL,
	archived_at     INTEGER NOT NULL, -- 0 when it is not
	expires_at      INTEGER NOT NULL, -- without meaning when archived
	deleted_at      INTEGER NOT NULL  -- 0 when it is not
) STRICT, WITHOUT ROWID;
CREATE INDEX assistant_sessions_assistant ON assistant_sessions (assistant_id, last_message_at);
CREATE INDEX assistant_sessions_expires ON assistant_sessions (expires_at);

CREATE TABLE assistant_messages (
	number     INTEGER PRIMARY KEY AUTOINCREMENT, -- oldest first
	id         TEXT NOT NULL,
	session_id TEXT NOT NULL,
	role       TEXT NOT NULL, -- user or assistant
	content    TEXT NOT NULL,
	created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX assistant_messages_session ON assistant_messages (session_id, number);

-- What assistants were asked to do.
CREATE TABLE assistant_commands (
	number       INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order in which they came
	id           TEXT NOT NULL, -- the client's
	extension_id TEXT NOT NULL, -- empty for clients that give none
	assistant_id TEXT NOT NULL,
	session_id   TEXT NOT NULL,
	text         TEXT NOT NULL,
	stream       INTEGER NOT NULL,
	status       TEXT NOT NULL, -- as in status_update
	result       TEXT NOT NULL,
	error        TEXT NOT NULL,
	queued_at    INTEGER NOT NULL,
	started_at   INTEGER NOT NULL, -- 0 when it was not
	ended_at     INTEGER NOT NULL, -- 0 when it has not
	reported     INTEGER NOT NULL  -- whether a client was connected to get the last status
) STRICT;
CREATE INDEX assistant_commands_id ON assistant_commands (id);
CREATE INDEX assistant_commands_open ON assistant_commands (number) WHERE ended_at = 0 OR reported = 0;
