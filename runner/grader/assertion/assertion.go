// Package assertion evaluates the assertions of the code grader: expressions in Python or
// JavaScript about a trial. Workers are processes that evaluate assertions of one language. They
// stay between assertions, and are killed when one takes too much time or memory. Programs
// create a [Pool]; a program that evaluates JavaScript calls [Main] first.
//
//	grader ─► Pool ─► worker ══ request, a line of JSON ══► process: python.py, or Main of this program
//	                         ◄═ reply per assertion ══════
//
// Assertions belong to the suite and can do whatever other programs of the suite can do; the
// process is not a sandbox against them. It prevents an expression that gets out of hand on an
// agent's output from stopping the daemon. The process holds no secrets.
package assertion

import (
	"encoding/json"
	"fmt"
)

// A Language describes how to start the workers of one language. Use [Python] or [JavaScript].
type Language struct {
	name string
	// find returns the programs to try, in order.
	find func() ([]string, error)
	// args is the command line of a worker, and env its environment.
	args func(program string) []string
	env  func() []string
	// firstLine: the first line on stderr is the reason of a crash; otherwise the last line is.
	firstLine bool
	// accept returns an error if a worker that is ready cannot be used.
	accept func(*reply) error
}

// A Fault is a syntax error of an assertion. Line and Column are 1-based; 0 means unknown.
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

// A request is a line that a worker reads. It contains assertions to evaluate about a subject,
// or assertions to check.
type request struct {
	// Subject holds the names that assertions can use, as one JSON object.
	Subject    any      `json:"subject,omitempty"`
	Assertions []string `json:"assertions,omitempty"`
	// CPUSeconds is the most processor time that each assertion can take.
	CPUSeconds int `json:"cpuSeconds,omitempty"`
	// Value asks for the value of the only assertion instead of whether it is true.
	Value bool `json:"value,omitempty"`
	// Check lists sources to compile without running them.
	Check []string `json:"check,omitempty"`
}

// A reply is a line that a worker writes.
type reply struct {
	// Ready marks the first reply, with Executable, the path of the real interpreter, and its
	// Version.
	Ready      bool   `json:"ready,omitempty"`
	Executable string `json:"executable,omitempty"`
	Version    []int  `json:"version,omitempty"`
	// Complaint is the reason why an assertion failed; empty if it is true.
	Complaint *string `json:"complaint,omitempty"`
	// Value is the value that a request asked for.
	Value json.RawMessage `json:"value,omitempty"`
	// Faults has an entry for each source of Check; nil if the source has no fault.
	Faults []*Fault `json:"faults,omitempty"`
	// Fault is the reason why the worker could not read the request.
	Fault string `json:"fault,omitempty"`
}
