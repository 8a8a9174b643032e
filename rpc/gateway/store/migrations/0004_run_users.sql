-- Who runs belong to that were started for somebody other than the owner of the server.
CREATE TABLE run_users (
	run_id TEXT PRIMARY KEY,
	user   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
