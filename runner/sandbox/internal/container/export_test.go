package container

import "io"

// Replace replaces a directory by an archive.
func Replace(path string, archive io.Reader, limit int64) error { return replace(path, archive, limit) }

// BundlesDir returns the directory of bundles.
func BundlesDir() string { return bundlesDir() }

// SetBundles sets the directory of the bundles of all owners, and returns the one before.
func SetBundles(dir string) (before string) {
	before, bundles = bundles, dir
	return before
}

// StartTime returns the time at which a process started.
func StartTime(pid int) string { return startTime(pid) }
