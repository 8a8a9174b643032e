package container

import "io"

// Replace replaces a directory by an archive.
func Replace(path string, archive io.Reader, limit int64) error { return replace(path, archive, limit) }
