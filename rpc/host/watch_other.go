//go:build !unix

package host

import "os"

// WatchOutput does nothing here: only a write shows that the client is gone.
func WatchOutput(*os.File, func()) (stop func()) { return func() {} }

// WatchProcess does nothing here.
func WatchProcess(int, func()) (stop func()) { return func() {} }
