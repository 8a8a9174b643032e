// Package assertion evaluates assertions of the code grader: expressions of Python
// or JavaScript over a trial. Each language has workers, processes that stay
// between assertions and that are killed when one takes too long or too much. Make
// a [Pool]; a program that evaluates JavaScript calls [Main] first.
//
//	grader ─► Pool ─► worker ══ request, a line of JSON ══► process: python.py, or Main of this program
//	                         ◄═ reply per assertion ══════
//
// Assertions belong to the suite and may do what programs of the suite may do; the
// process is no wall against them. It keeps an expression that runs away with
// what an agent wrote from taking the daemon with it, and holds no secrets.
package assertion

import (
	"fmt"
)

// Language says how the workers of one language are started. Use [Python] or [JavaScript].
type Language struct {
	name string
	// find returns the programs to try, in order.
	find func() ([]string, error)
	// args is the command line of a worker, and env its environment.
	args func(program string) []string
	env  func() []string
	// firstLine: the reason of a crash is the first line on stderr, and not the last.
	firstLine bool
	// accept says why a worker that is ready is of no use; nil when it is.
	accept func(*reply) error
}

// Fault is a syntax error of an assertion. Line and Column are 1-based, 0 when unknown.
type Fault struct {
	Message string `json:"message"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

func (f *Fault) Error() string {
	switch {
	case f.Line > 1:
		return fmt.Sprintf("%s (line %d, column %d)", f.Message, f.Line, f.Column)
	case f.Column > 0:
		return fmt.Sprintf("%s (column %d)", f.Message, f.Column)
	}
	return f.Message
}

// request is a line that a worker reads: assertions to evaluate over a subject, or
// to check.
type request struct {
	// Subject holds the names that assertions see, as one JSON object.
	Subject    any      `json:"subject,omitempty"`
	Assertions []string `json:"assertions,omitempty"`
	// CPUSeconds is how much processor time each assertion may take.
	CPUSeconds int `json:"cpuSeconds,omitempty"`
	// Check are sources to compile, and not to run.
	Check []string `json:"check,omitempty"`
}

// reply is a line that a worker writes.
type reply struct {
	// Ready is the first reply. It comes with Executable, the path of the real
	// interpreter, and its Version.
	Ready      bool   `json:"ready,omitempty"`
	Executable string `json:"executable,omitempty"`
	Version    []int  `json:"version,omitempty"`
	// Complaint says what is wrong with an assertion; empty when it is true.
	Complaint *string `json:"complaint,omitempty"`
	// Faults has an entry for each source of Check, nil for one without a fault.
	Faults []*Fault `json:"faults,omitempty"`
	// Fault says why the request could not be read.
	Fault string `json:"fault,omitempty"`
}
