package lsp

import (
	"strings"

	"go.lsp.dev/protocol"

	"waza/eval/decode"
)

// source is the name that editors show next to a finding.
const source = "waza"

// A Finding is a finding of a suite with its range in a text.
type Finding struct {
	decode.Diagnostic
	Range protocol.Range
}

// Findings returns the findings of one file with their ranges. text is nil if the file cannot be
// read: then all findings concern the file as a whole.
func Findings(found decode.Diagnostics, text *Text) []Finding {
	if text == nil {
		text = NewText("", UTF16)
	}
	list := make([]Finding, 0, len(found))
	for _, d := range found {
		list = append(list, Finding{d, text.RangeOf(d)})
	}
	return list
}

// RangeOf returns the range of a finding: its word if known, else the rest of its line, else the
// first line.
func (t *Text) RangeOf(d decode.Diagnostic) protocol.Range {
	line := min(max(d.Line, 1), t.Lines())
	begin := t.Place(line, max(d.Column, 1))
	_, end := t.span(line - 1)
	switch {
	case d.Line > 0 && d.EndColumn > d.Column:
		return t.Range(begin, t.Place(line, d.EndColumn))
	case d.Column <= 1:
		begin += indentation(t.content[begin:end])
	}
	if rest := strings.TrimRight(t.content[begin:end], " \t"); rest != "" {
		end = begin + len(rest)
	}
	return t.Range(begin, end)
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// Shown returns a finding as editors show it.
func (f Finding) Shown() protocol.Diagnostic {
	d := protocol.Diagnostic{
		Range: f.Range, Severity: severity(f.Diagnostic),
		Code: protocol.String(f.Code), Source: protocol.NewOptional(source), Message: protocol.String(f.Message),
	}
	switch f.Code {
	case decode.CodeNoEffect:
		d.Tags = protocol.NewDiagnosticTags(protocol.DiagnosticTagUnnecessary)
	case decode.CodeDeprecated:
		d.Tags = protocol.NewDiagnosticTags(protocol.DiagnosticTagDeprecated)
	}
	if f.Suggestion != "" {
		d.Message = protocol.String(f.Message + ` (did you mean "` + f.Suggestion + `"?)`)
		d.Data, _ = protocol.Marshal(map[string]string{"suggestion": f.Suggestion})
	}
	return d
}

// severity returns the severity of a finding. It is lower for a file of another tool, because
// its author is not responsible if waza does not support it.
func severity(d decode.Diagnostic) protocol.DiagnosticSeverity {
	switch {
	case d.Code == decode.CodeOtherDialect:
		return protocol.DiagnosticSeverityInformation
	case d.Severity == decode.Error:
		return protocol.DiagnosticSeverityError
	case d.Severity == decode.Warning:
		return protocol.DiagnosticSeverityWarning
	}
	return protocol.DiagnosticSeverityInformation
}

// Diagnostics returns findings as editors show them, never nil.
func Diagnostics(list []Finding) []protocol.Diagnostic {
	out := make([]protocol.Diagnostic, 0, len(list))
	for _, f := range list {
		out = append(out, f.Shown())
	}
	return out
}
