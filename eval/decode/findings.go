package decode

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/files"
)

// maxDiagnostics limits the findings of one suite, because nobody reads more.
const maxDiagnostics = 2000

// Findings collects findings while files are read. The zero value is empty. It is not safe for
// concurrent use.
type Findings struct{ found Diagnostics }

// Full reports whether Report drops further findings.
func (f *Findings) Full() bool { return len(f.found) >= maxDiagnostics }

// Count returns the number of findings.
func (f *Findings) Count() int { return len(f.found) }

// Since returns the findings after the first n, in the order in which they were reported.
func (f *Findings) Since(n int) Diagnostics { return slices.Clone(f.found[min(n, len(f.found)):]) }

// Errors returns the number of findings that are errors.
func (f *Findings) Errors() int { return len(f.found.Errors()) }

// Report adds a finding.
func (f *Findings) Report(d Diagnostic) {
	// Many warnings must not hide that there are errors.
	if !f.Full() || d.Severity == Error && len(f.found) < 2*maxDiagnostics {
		f.found = append(f.found, d)
	}
}

// Add adds the findings of another collection, in their order.
func (f *Findings) Add(more *Findings) {
	for _, d := range more.found {
		f.Report(d)
	}
}

// Reportf adds a finding about a node; a nil node means the whole file.
func (f *Findings) Reportf(s *Source, n *yaml.Node, severity Severity, code Code, format string, args ...any) {
	f.Report(s.Diagnostic(n, severity, code, fmt.Sprintf(format, args...)))
}

// Unreadable reports a file that cannot be read; name is the file's name in messages. The
// finding is at the place that names the file, or in the file itself when src is nil.
func (f *Findings) Unreadable(name string, src *Source, at *yaml.Node, err error) {
	code := CodeUnreadable
	switch {
	case errors.Is(err, files.ErrTooLarge):
		code = CodeTooLarge
	case errors.Is(err, files.ErrEscapes):
		code = CodeEscapingPath
	case errors.Is(err, ErrNotText):
		code = CodeNotText
	case errors.Is(err, fs.ErrNotExist):
		code = CodeMissingFile
	}
	if src == nil {
		f.Report(Diagnostic{File: name, Severity: Error, Code: code, Message: files.Reason(err)})
		return
	}
	f.Reportf(src, at, Error, code, "%s: %s", name, files.Reason(err))
}

// Demote turns the errors after the first n findings into warnings. It is for disabled tasks,
// whose faults must not prevent the suite from running.
func (f *Findings) Demote(n int) {
	for i := n; i < len(f.found); i++ {
		if f.found[i].Severity == Error {
			f.found[i].Severity = Warning
		}
	}
}

// Quietly calls do and discards its findings.
func (f *Findings) Quietly(do func()) {
	kept := f.found
	do()
	f.found = kept
}

// Diagnostics returns the findings, sorted and without duplicates.
func (f *Findings) Diagnostics() Diagnostics {
	slices.SortStableFunc(f.found, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	seen := make(map[Diagnostic]bool, len(f.found))
	return slices.DeleteFunc(f.found, func(d Diagnostic) bool {
		again := seen[d]
		seen[d] = true
		return again
	})
}
