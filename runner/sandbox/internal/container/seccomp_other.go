//go:build !linux

package container

// filterOf returns nothing, because only Linux has OCI runtimes.
func filterOf() *configFilter { return nil }
