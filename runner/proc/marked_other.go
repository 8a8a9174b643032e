//go:build unix && !linux

package proc

import "os/exec"

// kill does nothing where one process cannot read another's environment.
func (mark) kill() int { return 0 }

// A Moment is a point in time on the scale of process start times, which only Linux has.
type Moment struct{}

// Now returns the present.
func Now() Moment { return Moment{} }

func (Moment) confirmIDs(int) {}

var instanceLimit limitRange

func newLimit() limitRange { return limitRange{} }

func startNumbered(_ uint64, program func() error) error { return program() }

// StartApart starts a program that is not part of a trial, such as a browser for the user.
func StartApart(cmd *exec.Cmd) error { return cmd.Start() }

// Sandboxed returns nothing, because only Linux shows which processes are in a sandbox.
func Sandboxed() ([]int, error) { return nil, nil }

// IsSandboxed returns false.
func IsSandboxed(int) bool { return false }
