//go:build !linux

package host

import "os"

func pollable(*os.File) Input { return nil }
