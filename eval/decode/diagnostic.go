package decode

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says how much a finding matters. The zero value is not valid.
type Severity string

const (
	// Error findings keep a suite from running.
	Error Severity = "error"
	// Warning findings are worth mending; the suite runs all the same.
	Warning Severity = "warning"
	// Info findings tell something the author may want to know.
	Info Severity = "info"
)

// Diagnostic is one finding about a suite, a task file or a file they refer to.
type Diagnostic struct {
	File      string   `json:"file"`                // as the caller named its directory, slash-separated
	Line      int      `json:"line"`                // 1-based; 0 when the finding is about the whole file
	Column    int      `json:"column"`              // 1-based, in characters; 0 when the line is
	EndColumn int      `json:"endColumn,omitempty"` // 1-based, exclusive; 0 when unknown
	Severity  Severity `json:"severity"`
	Code      Code     `json:"code"`
	Message   string   `json:"message"`
	// Suggestion is the text to put in place of what stands between Column
	// and EndColumn, or empty when nothing near is known.
	Suggestion string `json:"suggestion,omitempty"`
}

// String gives the finding as a compiler would: "file:line:column: severity: message".
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Column)
	}
	fmt.Fprintf(&b, ": %s: %s", d.Severity, d.Message)
	if d.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", d.Suggestion)
	}
	fmt.Fprintf(&b, " [%s]", d.Code)
	return b.String()
}

// Diagnostics are findings in the order of file, line and column.
type Diagnostics []Diagnostic

// HasErrors reports whether any finding is an [Error].
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Errors returns the findings that keep the suite from running.
func (ds Diagnostics) Errors() Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity == Error {
			out = append(out, d)
		}
	}
	return out
}
