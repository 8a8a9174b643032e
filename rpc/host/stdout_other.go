//go:build !unix

package host

import "os"

// TakeStdout gives the standard output of the process for the protocol alone,
// and lets what is written to os.Stdout go to standard error. Call it once,
// before anything is written or started.
func TakeStdout() (*os.File, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out, nil
}

// IgnoreBrokenPipe has nothing to do here.
func IgnoreBrokenPipe() {}
