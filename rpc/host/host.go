// Package host deals with the process around a connection: sockets that only this user can
// reach, the user at the other end, the process that started this one, and the standard output
// that both share. A program first calls [TakeStdout] and [IgnoreBrokenPipe]. It makes listeners
// with [ListenTCP] and [ListenUnix]. It calls [Admit] for each accepted connection, or wraps the
// listener with [Guard].
package host
