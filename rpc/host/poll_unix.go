//go:build unix && !linux

package host

// poll waits until fd has one of the events, or an error, and gives them; 0
// when wake came first.
func poll(fd int, events int16, wake int) int16 { return pollBlocking(fd, events, wake) }
