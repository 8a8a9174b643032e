//go:build unix && !linux

package host

// WatchProcess calls gone once when the process pid has ended or does not exist. It uses one
// goroutine; stop ends it and waits for it.
func WatchProcess(pid int, gone func()) (stop func()) {
	return watch(gone, func(wake int) bool { return waitForExit(pid, wake) })
}
