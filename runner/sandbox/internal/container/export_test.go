package container

import "io"

// Replace replaces a directory by an archive.
func Replace(path string, archive io.Reader, limit int64) error { return replace(path, archive, limit) }

// BundlesDir returns the directory of bundles.
func BundlesDir() string { return bundlesDir() }

// StartTime returns the time at which a process started.
func StartTime(pid int) string { return startTime(pid) }
