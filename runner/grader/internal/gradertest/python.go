package gradertest

import (
	"testing"

	"waza/runner/grader/assertion"
)

// NeedPython skips the test if the machine has no Python.
func NeedPython(t testing.TB) {
	t.Helper()
	if _, err := assertion.FindPython(""); err != nil {
		t.Skip(err)
	}
}
