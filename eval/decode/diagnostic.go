package decode

import (
	"fmt"
	"slices"
	"strings"
)

// A Severity is the importance of a finding. The zero value is not valid.
type Severity string

const (
	// Error findings prevent the suite from running.
	Error Severity = "error"
	// Warning findings should be fixed, but the suite runs.
	Warning Severity = "warning"
	// Info findings are notes for the author.
	Info Severity = "info"
)

// A Diagnostic is one finding about a suite, a task file or a file they refer to.
type Diagnostic struct {
	File      string   `json:"file"`                // relative to the directory as the caller named it, with slashes
	Line      int      `json:"line"`                // 1-based; 0 when the finding is about the whole file
	Column    int      `json:"column"`              // 1-based, in characters; 0 when Line is 0
	EndColumn int      `json:"endColumn,omitempty"` // 1-based, exclusive; 0 when unknown
	Severity  Severity `json:"severity"`
	Code      Code     `json:"code"`
	Message   string   `json:"message"`
	// Suggestion is the replacement for the text between Column and EndColumn; empty if unknown.
	Suggestion string `json:"suggestion,omitempty"`
}

// String returns the finding in the form of compilers: "file:line:column: severity: message".
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

// Diagnostics are findings sorted by file, line and column.
type Diagnostics []Diagnostic

// HasErrors reports whether any finding is an [Error].
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Errors returns the findings that prevent the suite from running.
func (ds Diagnostics) Errors() Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity == Error {
			out = append(out, d)
		}
	}
	return out
}
