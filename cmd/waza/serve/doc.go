// Package serve implements `waza serve`, which opens the doors of a configuration and serves
// them. Call [Command] for the command, or [Open] and then [Server.Serve] for the server alone.
// [Check] describes the doors without opening them.
package serve
