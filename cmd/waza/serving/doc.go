// Package serving is `waza serve`: it opens the doors of a configuration and serves
// them. Call [Command] for the command, or [Open] and then [Server.Serve] for the server
// alone; [Check] describes what would be opened.
package serving
