package assertion

import (
	"errors"
	"os"
	"sync/atomic"
)

// workerArgument is the only argument of this program when it runs as a worker for JavaScript.
const workerArgument = "javascript-assertions"

// mainCalled reports whether Main was called, so that this program can be its own worker. Any other
// program, started again as a worker, would do whatever it usually does.
var mainCalled atomic.Bool

// errNoWorker means that the program does not call Main.
var errNoWorker = errors.New("JavaScript assertions run in a child process of this program, which does not support that: " +
	"call assertion.Main at the start of main, and of TestMain in tests")

// JavaScript returns the language JavaScript. Its workers are copies of this program: see
// [Main].
func JavaScript() *Language {
	return &Language{
		name:   "JavaScript",
		find:   findSelf,
		args:   func(program string) []string { return []string{program, workerArgument} },
		env:    engineEnv,
		accept: func(*reply) error { return nil },
		// A Go program prints its stacks after the reason.
		firstLine: true,
	}
}

// JavaScriptUnavailable returns nil if this program can evaluate JavaScript. Otherwise the error
// states the reason and what to do.
func JavaScriptUnavailable() error {
	_, err := findSelf()
	return err
}

// findSelf returns the path of the running program. On Linux the path leads to the same program
// even after a newer version replaced its file.
func findSelf() ([]string, error) {
	if !mainCalled.Load() {
		return nil, errNoWorker
	}
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return []string{self}, nil
	}
	path, err := os.Executable()
	return []string{path}, err
}
