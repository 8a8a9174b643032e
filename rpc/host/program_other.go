//go:build !linux

package host

// ReleaseProgram does nothing on this system.
func ReleaseProgram() {}
