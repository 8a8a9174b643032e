-- Random bytes by name, made at first use.
CREATE TABLE secrets (
	name  TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Answers to evaluations that nobody waits for.
CREATE TABLE answers (
	number    INTEGER PRIMARY KEY AUTOINCREMENT, -- oldest first
	id        TEXT NOT NULL UNIQUE,
	client_id TEXT NOT NULL,
	answer    BLOB NOT NULL,
	bytes     INTEGER NOT NULL,
	saved_at  INTEGER NOT NULL -- Unix milliseconds
) STRICT;
CREATE INDEX answers_saved_at ON answers (saved_at);

-- Evaluations that a client has.
CREATE TABLE assignments (
	id          TEXT PRIMARY KEY,
	client_id   TEXT NOT NULL,
	assigned_at INTEGER NOT NULL -- Unix milliseconds
) STRICT, WITHOUT ROWID;

-- Evaluation agents that have registered.
CREATE TABLE agents (
	client_id       TEXT PRIMARY KEY,
	version         TEXT NOT NULL,
	tools           TEXT NOT NULL, -- a JSON array
	max_concurrency INTEGER NOT NULL,
	address         TEXT NOT NULL,
	first_seen      INTEGER NOT NULL, -- Unix milliseconds
	last_seen       INTEGER NOT NULL  -- Unix milliseconds
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_last_seen ON agents (last_seen);

-- Runs that the server has started and resumes after a restart.
CREATE TABLE owned_runs (
	run_id   TEXT PRIMARY KEY,
	owned_at INTEGER NOT NULL -- Unix milliseconds
) STRICT, WITHOUT ROWID;
