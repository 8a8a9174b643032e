//go:build !unix

package host

import "os"

// WatchOutput does nothing here: that the client is gone is noticed by writing.
func WatchOutput(*os.File, func()) (stop func()) { return func() {} }

// WatchProcess does nothing here.
func WatchProcess(int, func()) (stop func()) { return func() {} }
