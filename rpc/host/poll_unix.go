//go:build unix && !linux

package host

// poll waits until fd has one of the events or an error, and returns them. It returns 0 if wake
// can be read first.
func poll(fd int, events int16, wake int) int16 { return pollBlocking(fd, events, wake) }
