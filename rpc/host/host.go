// Package host deals with the process around a connection: sockets that only this user can
// reach, the process that started this one, and the standard output that both share. A program
// first calls [TakeStdout] and [IgnoreBrokenPipe]. It makes listeners with [ListenTCP] and
// [ListenUnix]. Package peer says which of their connections to accept.
package host
