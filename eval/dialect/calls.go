package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// A Call asks a program of the suite for a part of the suite, such as a prompt. The loader starts no
// programs: the caller does, and reads the suite again with the results.
type Call struct {
	// Name is the program as the suite names it.
	Name string
	// Command is the program and its arguments, in the directory of the suite.
	Command []string
	// Input is a line of JSON. The program reads a line with a mark and then such lines from its standard input.
	// It answers each with a line on its standard output: the mark, the number of the call from 0, the size of
	// the rest in bytes, and {"output": VALUE} or {"error": TEXT}. Lines without the mark do not count, because
	// programs that it starts can write them. Calls with the same command share a process.
	// Empty means that the standard output of the program is the result: a text.
	Input string
	// Timeout limits the call.
	Timeout time.Duration
}

// Key identifies a call. Two calls with the same key have the same result.
func (c *Call) Key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", c.Command, c.Input))
	return hex.EncodeToString(sum[:])
}

// A Result is that of a call.
type Result struct {
	// Output is the value as JSON, or the text of a program without Input.
	Output string
	// Fault is the reason why the program returned nothing; empty if it did.
	Fault string
}

// Call returns the result of a call, or notes that the suite lacks it.
func (t *Translation) Call(c Call) (r Result, known bool) {
	key := c.Key()
	if r, known = t.Results[key]; known {
		return r, true
	}
	if t.asked == nil {
		t.asked = map[string]bool{}
	}
	if !t.asked[key] {
		t.asked[key] = true
		t.Calls = append(t.Calls, c)
	}
	return Result{}, false
}
