// Package serving opens the doors of `waza serve` and serves them. Call [Open] and then
// [Server.Serve]; [Check] describes what would be opened.
package serving
