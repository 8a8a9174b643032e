//go:build !linux

package proc

// isFirstThread reports whether this goroutine is on the first thread of the process. No system
// but Linux restricts single threads.
func isFirstThread() bool { return false }
