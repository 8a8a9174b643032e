// Package host deals with the process around a connection: sockets that only this user
// can reach, the user at the other end, the process that started this one, and the
// standard output that both share. A program calls [TakeStdout] and [IgnoreBrokenPipe]
// first; listeners come from [ListenTCP] and [ListenUnix], and whoever accepts
// connections asks [Admit] about each, or wraps the listener with [Guard].
package host
