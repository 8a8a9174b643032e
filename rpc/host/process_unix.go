//go:build unix && !linux

package host

// WatchProcess calls gone, once, when the process pid has ended or there is
// none. It costs a goroutine, which stop ends and waits for.
func WatchProcess(pid int, gone func()) (stop func()) {
	return watch(gone, func(wake int) bool { return lookFor(pid, wake) })
}
