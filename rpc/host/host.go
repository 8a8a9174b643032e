// Package host deals with the process around a connection: the user at its other
// end, the process that started this one, and the standard output that both share.
// A program calls [TakeStdout] and [IgnoreBrokenPipe] first; whoever accepts
// connections asks [Admit] about each, or wraps the listener with [Guard].
package host
