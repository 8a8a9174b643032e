//go:build !linux

package grader

import "io/fs"

// systemIdentity returns zeros, which mean unknown. waza then always compares contents.
func systemIdentity(fs.FileInfo) (dev, ino uint64, changed int64) { return 0, 0, 0 }
