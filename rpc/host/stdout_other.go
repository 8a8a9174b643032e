//go:build !unix

package host

import "os"

// TakeStdout returns the standard output of the process, for protocol messages only, and
// redirects os.Stdout to standard error. Call it once, before the process writes to os.Stdout or
// starts other processes.
func TakeStdout() (*os.File, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out, nil
}

// IgnoreBrokenPipe does nothing here.
func IgnoreBrokenPipe() {}
