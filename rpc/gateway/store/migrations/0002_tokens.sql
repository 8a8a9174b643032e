-- Pairs of tokens that waza token create made, and those that a refresh made of them.
CREATE TABLE tokens (
	id         TEXT PRIMARY KEY, -- how the ids of its tokens begin
	user       TEXT NOT NULL,
	role       TEXT NOT NULL,
	created_at INTEGER NOT NULL, -- Unix milliseconds
	expires_at INTEGER NOT NULL, -- Unix milliseconds: when the last of its tokens expires
	revoked_at INTEGER NOT NULL  -- Unix milliseconds; 0 when it is valid
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_expires_at ON tokens (expires_at);

-- Single tokens that were revoked, until they expire.
CREATE TABLE revoked_tokens (
	id         TEXT PRIMARY KEY,
	expires_at INTEGER NOT NULL -- Unix milliseconds
) STRICT, WITHOUT ROWID;
