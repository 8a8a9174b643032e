package assertion

import (
	"errors"
	"os"
	"sync/atomic"
)

// workerArgument is the only argument of this program when it is a worker for
// JavaScript.
const workerArgument = "javascript-assertions"

// serves says that Main was called: this program can be its own worker. Without
// that, one that is started again as a worker would do whatever it usually does.
var serves atomic.Bool

// errNoWorker says what is missing in a program that embeds the runner.
var errNoWorker = errors.New("JavaScript assertions run in a child process of this program, and it cannot be one: " +
	"it must call assertion.Main at the beginning of main, and of TestMain in tests")

// JavaScript is the language JavaScript. Its workers are this program, started
// again: see [Main].
func JavaScript() *Language {
	return &Language{
		name:   "JavaScript",
		find:   findSelf,
		args:   func(program string) []string { return []string{program, workerArgument} },
		env:    engineEnv,
		accept: func(*reply) error { return nil },
		// A program of Go prints its stacks after the reason.
		firstLine: true,
	}
}

// JavaScriptUnavailable says why this program cannot evaluate JavaScript, and what
// to do about it; nil when it can.
func JavaScriptUnavailable() error {
	_, err := findSelf()
	return err
}

// findSelf returns the program that this process runs. On Linux that is the same
// one also after its file was replaced by a newer version.
func findSelf() ([]string, error) {
	if !serves.Load() {
		return nil, errNoWorker
	}
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return []string{self}, nil
	}
	path, err := os.Executable()
	return []string{path}, err
}
