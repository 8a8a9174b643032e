package proc

import "slices"

// FromOutside reports whether a program was ended by a signal that programs do not
// bring upon themselves: by a person, another program, or a system that is short of
// memory. A program that crashes ends by other signals, SIGSEGV and SIGABRT for example.
func (e *ExitError) FromOutside() bool {
	return slices.Contains([]string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"}, e.Signal)
}
