//go:build !unix

package seal

import "io/fs"

// forbidden returns 0, because file modes do not determine who has access.
func forbidden(fs.FileInfo) fs.FileMode { return 0 }
