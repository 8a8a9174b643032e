package proc

import "slices"

// FromOutside reports whether a program was ended by a signal that programs do not cause
// themselves. A person, another program or a system that is short of memory sends such signals.
// A program that crashes ends by other signals, for example SIGSEGV and SIGABRT.
func (e *ExitError) FromOutside() bool {
	return slices.Contains([]string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"}, e.Signal)
}
