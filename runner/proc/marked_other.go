//go:build unix && !linux

package proc

import "os/exec"

// kill does nothing where one process cannot read another's environment.
func (mark) kill() int { return 0 }

// Now returns the present.
func Now() Moment { return 0 }

var instanceLimit limitRange

func newLimit() limitRange { return limitRange{} }

func (limitRange) start(program func() error) error { return program() }

// StartApart starts a program that is not part of a trial, such as a browser for the user.
func StartApart(cmd *exec.Cmd) error { return cmd.Start() }
