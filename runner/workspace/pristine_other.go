//go:build !linux

package workspace

import "os"

// pristine returns false where waza cannot end all processes that may still use a directory.
func pristine(*os.Root) bool { return false }
