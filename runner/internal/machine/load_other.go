//go:build !darwin

package machine

// systemLoad returns the load average of the last minute per processor; negative if it is unknown.
func systemLoad() float64 { return -1 }
