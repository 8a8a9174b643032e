//go:build !linux

package container

import "errors"

func start(string, []string) error { return errors.New("containers run programs of Linux only") }
