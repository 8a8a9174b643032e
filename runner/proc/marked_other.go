//go:build unix && !linux

package proc

import "os/exec"

// killMarked does nothing where one process cannot read another's environment.
func killMarked(mark) int { return 0 }

// Now returns the present.
func Now() Moment { return 0 }

var instanceLimit limitRange

func newLimit() limitRange { return limitRange{} }

func startWithLimit(_ limitRange, start func() error) error { return start() }

// StartApart starts a program that is not part of a trial, such as a browser for the user.
func StartApart(cmd *exec.Cmd) error { return cmd.Start() }
