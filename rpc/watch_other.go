//go:build !unix

package rpc

import "os"

// watchOutput does nothing here: that the client is gone is noticed by writing.
func watchOutput(*os.File, func()) (stop func()) { return func() {} }

// watchProcess does nothing here.
func watchProcess(int, func()) (stop func()) { return func() {} }
