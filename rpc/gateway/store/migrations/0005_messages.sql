-- Messages to the clients of the router, and what has become of them.
CREATE TABLE messages (
	number  INTEGER PRIMARY KEY AUTOINCREMENT, -- oldest first
	id      TEXT NOT NULL UNIQUE,
	message TEXT NOT NULL -- JSON
) STRICT;
